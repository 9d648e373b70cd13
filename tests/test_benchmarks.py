"""Scripts of benchmarks/ that name internals of the package: the names exist."""

import inspect
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    """Import a script by its name."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    before = set(sys.modules)
    yield import_module
    for name in ("ablation", "data", "harness", "mutations"):
        if name not in before:
            sys.modules.pop(name, None)


def test_every_heuristic_can_be_switched_off(script):
    """What takes the place of a function has to take its arguments, too."""
    for heuristic in script("ablation").HEURISTICS:
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


def test_every_deliberate_mistake_can_be_made(script):
    for mutant in script("mutations").MUTANTS:
        text = (ROOT / "maxmargin" / mutant.file).read_text()
        assert text.count(mutant.right) == 1, mutant
        assert mutant.wrong != mutant.right, mutant
        for file in mutant.tests.partition(" -k ")[0].split():
            assert (ROOT / "tests" / file).exists(), mutant
