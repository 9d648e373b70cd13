"""The registry has every public estimator, and its declarations are of contracts that exist."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import get_tags

import maxmargin
from maxmargin.testing import all_estimators

INSTANCES = all_estimators()


def public_estimators():
    """Return the estimators that a public module of this package names in ``__all__``."""
    found = {}
    for module in pkgutil.iter_modules(maxmargin.__path__):
        if module.name.startswith("_") or module.name in ("dask", "testing", "cli"):
            continue
        holder = importlib.import_module(f"maxmargin.{module.name}")
        for name in getattr(holder, "__all__", ()):
            value = getattr(holder, name)
            if (
                inspect.isclass(value)
                and issubclass(value, BaseEstimator)
                and value.__module__.startswith("maxmargin.")
                and hasattr(value, "fit")
                and not inspect.isabstract(value)
            ):
                found[value] = f"{holder.__name__}.{name}"
    return found


def test_every_public_estimator_is_registered():
    registered = {type(instance.estimator) for instance in INSTANCES}
    missing = [place for kind, place in public_estimators().items() if kind not in registered]
    assert not missing, f"add instances to maxmargin/testing/registry.py: {missing}"


def test_regressors_of_several_targets_have_an_instance_with_them():
    several = {
        type(instance.estimator)
        for instance in INSTANCES
        if is_regressor(instance.estimator)
        and get_tags(instance.estimator).target_tags.multi_output
    }
    shown = {type(instance.estimator) for instance in INSTANCES if instance.target == "numbers"}
    assert several == shown


def test_names_are_unique_and_begin_with_the_class():
    names = [instance.name for instance in INSTANCES]
    assert len(set(names)) == len(names)
    for instance in INSTANCES:
        assert instance.name.split("-")[0] == type(instance.estimator).__name__


def test_declarations_are_of_contracts_that_exist():
    folder = Path(__file__).parent
    text = "".join(path.read_text() for path in folder.glob("test_*.py"))
    contracts = set(re.findall(r"^def test_(\w+)\(\s*instance", text, re.MULTILINE))
    for instance in INSTANCES:
        for name, reason in instance.cannot.items():
            assert name in contracts or name.startswith("check_"), (instance.name, name)
            assert len(reason.split()) > 3, (instance.name, name)


def test_samples_can_be_cut(instance):
    sample = instance.sample()
    part = sample.rows([3, 1, 2], instance.pairwise)
    assert len(part.X) == 3
    assert part.y is None or len(part.y) == 3
    assert part.X[0][0] == (sample.X[3, 3] if instance.pairwise else sample.X[3][0])
