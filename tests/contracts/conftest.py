"""Contracts run over the registry: a test with the argument ``instance`` has one run for each.

An instance that a contract does not apply to is left out (``@applies``); one that declares the
contract in ``cannot`` is an expected failure, and an error if it passes. All but the first instance
of a class are in the slow tier.
"""

import pytest

from maxmargin.testing import all_estimators

INSTANCES = all_estimators()


def marked(instance, contract, *values):
    """Return one run of a contract, with the marks that follow from the registry."""
    marks = [pytest.mark.fast if instance.first else pytest.mark.slow]
    if contract in instance.cannot:
        marks.append(pytest.mark.xfail(reason=instance.cannot[contract], strict=True))
    return pytest.param(instance, *values, marks=marks)


def pytest_generate_tests(metafunc):
    """Run a contract over all instances that it applies to."""
    if "instance" not in metafunc.fixturenames or "check" in metafunc.fixturenames:
        return
    contract = metafunc.function.__name__.removeprefix("test_")
    applies = getattr(metafunc.function, "applies", lambda instance: True)
    chosen = [instance for instance in INSTANCES if applies(instance)]
    runs = [marked(instance, contract) for instance in chosen]
    metafunc.parametrize("instance", runs, ids=[instance.name for instance in chosen])
