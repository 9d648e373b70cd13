"""scikit-learn's checks of estimators, over all instances of the registry."""

import re

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from maxmargin.testing import all_estimators

# compiled anew, or in test_containers.py and test_answers.py, too
SLOW = re.compile("readonly_memmap|sparse_array|sparse_matrix|sample_weight_equivalence")


def name_of(check):
    """Return what a check is called, with the options it is bound to."""
    options = ",".join(f"{key}={value}" for key, value in getattr(check, "keywords", {}).items())
    name = getattr(check, "func", check).__name__
    return f"{name}({options})" if options else name


def runs():
    """Yield every instance with every check that scikit-learn has for it."""
    known = set()
    for instance in all_estimators():
        if repr(instance.estimator) in known or instance.data == "sequences":
            continue  # the same one with another y, or no matrix of numbers
        known.add(repr(instance.estimator))
        for estimator, check in estimator_checks_generator(instance.estimator):
            name = getattr(check, "func", check).__name__
            fast = instance.first and not SLOW.search(name_of(check))
            marks = [pytest.mark.fast if fast else pytest.mark.slow]
            if name in instance.cannot:
                marks.append(pytest.mark.xfail(reason=instance.cannot[name], strict=True))
            yield pytest.param(
                estimator, check, marks=marks, id=f"{instance.name}-{name_of(check)}"
            )


@pytest.mark.parametrize(("estimator", "check"), list(runs()))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
