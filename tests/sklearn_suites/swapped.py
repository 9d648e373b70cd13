"""A pytest plugin: scikit-learn's own tests with the classes of this package in place of theirs.

Only tests that create one of our estimators are counted. A test that fails must be listed in the
suite's file of exceptions, and a line there that no failing test needs is an error, too.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import maxmargin
from maxmargin.aliases import PATHS

HERE = Path(__file__).resolve().parent
KINDS = {
    "internal": "tests scikit-learn's private functions or its implementation",
    "difference": "a stated difference; docs/migrating.md has it",
    "theirs": "fails for scikit-learn's own class, too, in this environment",
    "open": "not done yet: counts as a failure",
}
_ours: set[str] = set()  # tests that have created one of our estimators
_failed: dict[str, str] = {}
_passed: set[str] = set()
_current = ""


def exceptions(suite: str) -> list[tuple[str, str, str]]:
    """Return (kind, test, reason) for each line of a suite's file."""
    path = HERE / "exceptions" / f"{suite}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [line.split(" | ", 2) for line in lines if line.strip() and line[0] != "#"]
    for row in rows:
        if len(row) != 3 or row[0] not in KINDS:
            raise ValueError(
                f"{path.name}: want 'kind | test | reason', kind in {sorted(KINDS)}: {row}"
            )
    return [(kind, test, reason) for kind, test, reason in rows]


def covers(pattern: str, test: str) -> bool:
    """Whether a test is meant: exactly, by its function, or by a beginning before a star."""
    if pattern.endswith("*"):
        return test.startswith(pattern[:-1])
    return pattern in (test, test.partition("[")[0])


def pytest_configure(config: pytest.Config) -> None:
    """Put our classes where tests import theirs from."""
    import sklearn.experimental.enable_halving_search_cv  # noqa: F401

    if os.environ.get("MAXMARGIN_THEIRS"):
        return
    for name in maxmargin.__all__:
        getattr(maxmargin, name)  # loaded before their names change
    for path, names in PATHS.items():
        public = import_module(f"sklearn.{path}")
        for name in names:
            theirs = getattr(public, name)
            ours = getattr(import_module(f"maxmargin.{path}"), name)
            if isinstance(ours, type):
                ours.__new__ = staticmethod(_noted)
            for module in (public, sys.modules[theirs.__module__]):
                setattr(module, name, ours)


def _noted(cls: type, *args: object, **options: object) -> object:
    _ours.add(_current)
    return object.__new__(cls)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Remember which test runs."""
    global _current
    _current = nodeid.partition("::")[2]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep how a test ended."""
    test = report.nodeid.partition("::")[2]
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        _failed[test] = crash.message if crash else str(report.longrepr)
    elif report.passed and report.when == "call":
        _passed.add(test)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Judge the suite and write what was found as JSON."""
    suite = os.environ["MAXMARGIN_SUITE"]
    rows = exceptions(suite)
    listed = {test: kind for test in _failed for kind, pattern, _ in rows if covers(pattern, test)}
    complete = not session.config.option.keyword
    result = {
        "suite": suite,
        "passed": len(_passed & _ours),
        "failed": {test: why for test, why in _failed.items() if test not in listed},
        "excepted": Counter(listed.values()),
        "needless": [p for _, p, _ in rows if not any(covers(p, t) for t in _failed)]
        if complete
        else [],
    }
    Path(os.environ["MAXMARGIN_RESULT"]).write_text(json.dumps(result))
