"""scikit-learn's own tests pass with our classes, but for the exceptions that are listed."""

import pytest
from run import SUITES, run, share


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_a_suite(suite):
    result = run(suite, [])
    assert not result["failed"], "not among the exceptions"
    assert not result["needless"], "exceptions that are not needed"
    assert share(result) >= 0.95, "too many open ones"
