"""Scripts of benchmarks/ that name internals of the package: the names exist."""

import inspect
import sys
from pathlib import Path

import pytest


@pytest.fixture
def ablation(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    before = set(sys.modules)
    import ablation

    yield ablation
    for name in ("ablation", "data", "harness"):
        if name not in before:
            sys.modules.pop(name, None)


def test_every_heuristic_can_be_switched_off(ablation):
    """What takes the place of a function has to take its arguments, too."""
    for heuristic in ablation.HEURISTICS:
        for owner, name, value in heuristic.switches:
            assert name in vars(owner), (heuristic.name, name)
            function = getattr(vars(owner)[name], "py_func", vars(owner)[name])
            if inspect.isfunction(function):
                arguments = inspect.signature(function).parameters
                replaced = inspect.signature(getattr(value, "py_func", value))
                replaced.bind(*arguments)  # raises TypeError
        before = [vars(owner)[name] for owner, name, _ in heuristic.switches]
        with heuristic.switched_off():
            pass
        assert before == [vars(owner)[name] for owner, name, _ in heuristic.switches]
