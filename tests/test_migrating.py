"""docs/migrating.md lists every parameter, as the signatures of both packages have them.

python tests/test_migrating.py    # writes the table anew
"""

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression

from maxmargin.aliases import PATHS

PAGE = Path(__file__).parents[1] / "docs" / "migrating.md"
HEADING = "## Every parameter"
PACKAGES = "sklearn", "maxmargin"
RELEASE = "1.9"  # of scikit-learn, whose signatures the page is about


def defaults(cls):
    """Return the parameters of a class with their defaults in words."""
    parameters = list(signature(cls.__init__).parameters.values())[1:]
    return {p.name: "no default" if p.default is p.empty else repr(p.default) for p in parameters}


def classes():
    """Return the classes that both packages have: name, theirs, ours."""
    import sklearn.experimental.enable_halving_search_cv  # noqa: F401

    places = [(path, name) for path, names in PATHS.items() for name in names]
    pairs = [
        (name, *(getattr(import_module(f"{package}.{path}"), name) for package in PACKAGES))
        for path, name in places
    ]
    return sorted(pair for pair in pairs if isinstance(pair[1], type))


def listed(names):
    return ", ".join(f"`{name}`" for name in names) or "none"


def table():
    """Return the part of the page that is made from signatures."""
    lines = [
        HEADING,
        "",
        f"From the signatures of scikit-learn {RELEASE} and of this package; "
        "`python tests/test_migrating.py` writes it.",
        "",
        "| class | same default | other default (theirs, ours) | not here | added |",
        "|---|---|---|---|---|",
    ]
    for name, theirs, ours in classes():
        theirs, ours = defaults(theirs), defaults(ours)
        same = [p for p in theirs if p in ours and theirs[p] == ours[p]]
        other = [
            f"`{p}`: {theirs[p]}, {ours[p]}" for p in theirs if p in ours and theirs[p] != ours[p]
        ]
        missing, added = [p for p in theirs if p not in ours], [p for p in ours if p not in theirs]
        cells = listed(same), "; ".join(other) or "none", listed(missing), listed(added)
        lines.append(f"| `{name}` | {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def by_hand():
    return PAGE.read_text().partition(HEADING)[0]


pytestmark = pytest.mark.skipif(
    not sklearn.__version__.startswith(RELEASE), reason=f"signatures of scikit-learn {RELEASE}"
)


def test_every_parameter_is_listed():
    assert PAGE.read_text().endswith(table()), f"run python {__file__}"


@pytest.mark.parametrize(
    ("name", "theirs", "ours"), classes(), ids=[name for name, *_ in classes()]
)
def test_what_is_missing_or_has_another_default_is_explained(name, theirs, ours):
    theirs, ours = defaults(theirs), defaults(ours)
    differ = [p for p in theirs if theirs[p] != ours.get(p)]
    named = set(re.findall(r"`(\w+)", by_hand()))
    assert set(differ) <= named, f"docs/migrating.md says nothing of {set(differ) - named}"


def fitted(cls):
    """Fit a class to a few rows, with the options that give it all its attributes."""
    X, y = load_iris(return_X_y=True)
    wanted = {"oob_score": True, "bootstrap": True, "fit_inverse_transform": True}
    options = {k: v for k, v in wanted.items() if k in defaults(cls)}
    if "estimator" in defaults(cls) and defaults(cls)["estimator"] == "no default":
        name = "param_grid" if "param_grid" in defaults(cls) else "param_distributions"
        counted = {"n_iter": 2} if "n_iter" in defaults(cls) else {}
        options = {"estimator": LinearRegression(), name: {"fit_intercept": [True, False]}}
        options.update(counted, cv=2)
    return cls(**options).fit(X[:, :3] / X.std(), y)


@pytest.mark.filterwarnings("ignore")  # of either, about few rows and default options
@pytest.mark.parametrize(
    ("name", "theirs", "ours"), classes(), ids=[name for name, *_ in classes()]
)
def test_what_a_fitted_model_of_theirs_has_is_there_or_explained(name, theirs, ours):
    theirs, ours = fitted(theirs), fitted(ours)
    public = [k for k in dir(theirs) if k[0] != "_" and hasattr(theirs, k)]
    told = {k for k in public if k.endswith("_") or callable(getattr(theirs, k))}
    missing = {k for k in told - {"estimator"} if not hasattr(ours, k)}
    named = set(re.findall(r"`(\w+)", by_hand()))
    assert missing <= named, f"docs/migrating.md says nothing of {missing - named}"


if __name__ == "__main__":
    PAGE.write_text(by_hand().rstrip() + "\n\n" + table())
