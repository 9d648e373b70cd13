"""What every benchmark needs: clocks, turns, processes of their own, records and tables.

Times are wall seconds, or CPU seconds of all threads (``time.process_time``), which mean more on a
machine that others use, too. Sides that are compared take turns, so that a slow minute hits all.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PACKAGES = ("maxmargin", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "numba")
DASH = "-"
WALL, CPU = time.perf_counter, time.process_time
Work = Callable[[], object]


# -- clocks ------------------------------------------------------------------------------------


def seconds(work: Work, clock: Callable[[], float] = WALL) -> float:
    """Time of one call."""
    began = clock()
    work()
    return clock() - began


def times(
    work: Work, repeats: int, clock: Callable[[], float] = WALL, enough: float = np.inf
) -> list[float]:
    """Times of some calls; no more of them once so many seconds are spent."""
    taken: list[float] = []
    while not taken or (len(taken) < repeats and sum(taken) < enough):
        taken.append(seconds(work, clock))
    return taken


def in_turns(
    works: Mapping[str, Work], repeats: int, clock: Callable[[], float] = WALL
) -> dict[str, list[float]]:
    """Times of several sides, one call of each after the other, again and again."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            taken[name].append(seconds(work, clock))
    return taken


def median(values: Iterable[float]) -> float:
    """Median as a plain number."""
    return float(np.median(list(values)))


def geometric_mean(ratios: Iterable[float]) -> float:
    """Mean of the logarithms, undone."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


# -- where and with what -----------------------------------------------------------------------


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def environment() -> dict:
    """Say where and with what is measured."""
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True
    )
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.platform(terse=True),
        "versions": {
            "Python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
            "commit": git.stdout.strip() or "unknown",
        },
    }


def in_words(about: dict) -> str:
    """Write an environment in a line, as far as it was recorded."""
    parts = [about.get("cpu"), f"{about['cores']} cores"]
    parts += [f"{about['memory_gb']} GB"] if "memory_gb" in about else []
    machine = ", ".join(part for part in (*parts, about.get("system")) if part)
    versions = ", ".join(f"{name} {text}" for name, text in about["versions"].items())
    return f"{machine}. {versions}."


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


# -- records -----------------------------------------------------------------------------------


class Records(dict):
    """Results by key in a JSON file, a line each.

    ``save`` leaves the old file where it is killed in the middle: a run that was stopped loses
    little, and one of a part refreshes that part.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(json.loads(path.read_text()) if path.exists() else {})
        self.path = path

    def save(self) -> None:
        """Write all records."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{json.dumps(key)}: {json.dumps(record)}" for key, record in self.items()]
        new = self.path.with_suffix(".new")
        new.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        new.replace(self.path)

    def write(self, text: str) -> None:
        """Write a report beside the file."""
        self.path.with_suffix(".md").write_text(text)


def chosen(only: str, known: Iterable[str], parser: argparse.ArgumentParser) -> list[str]:
    """Names that ``--only`` asks for, in their order: all of them where it is empty."""
    known, wanted = list(known), [item for item in only.split(",") if item]
    unknown = set(wanted) - set(known)
    if unknown:
        parser.error(f"--only knows {', '.join(known)}; not {', '.join(sorted(unknown))}")
    return [name for name in known if not wanted or name in wanted]


# -- tables ------------------------------------------------------------------------------------


def table(header: list[str], lines: Iterable[list[str]]) -> str:
    """Write a table in Markdown."""
    rule = ["---"] * len(header)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *lines])


def number(value: float | None, form: str = ".3g") -> str:
    """Write a number, or a dash; times and ratios with three digits."""
    if value is None:
        return DASH
    return f"{value:.0f}" if form == ".3g" and abs(value) >= 1000 else f"{value:{form}}"


# -- processes ---------------------------------------------------------------------------------


def run_once(command: list[str], limit: float, environment: dict | None = None) -> dict:
    """Run a Python file in a process of its own; the JSON of its last line, or the error."""
    try:
        done = subprocess.run(
            [sys.executable, *command],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {limit:.0f} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


class LateError(Exception):
    """A process has not answered in time."""


class Child:
    """A process that is asked and answers in lines of JSON, begun anew when it was ended.

    Parameters
    ----------
    command : list of str
        A Python file and its arguments.
    starting : float
        Seconds that the first answer may take.
    """

    def __init__(self, command: list[str], starting: float = 300.0) -> None:
        self.command, self.starting = command, starting
        self.process: subprocess.Popen | None = None
        self.first: dict = {}

    def begin(self) -> dict:
        """Begin, unless it runs; returns what the process has said at first."""
        if self.process is not None:
            return self.first
        self.process = subprocess.Popen(
            [sys.executable, *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE.parent,
        )
        self.lines: queue.Queue = queue.Queue()

        def read(stream, lines: queue.Queue) -> None:
            for line in stream:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, args=(self.process.stdout, self.lines), daemon=True).start()
        self.first = self.answer(self.starting)
        return self.first

    def ask(self, question: object) -> None:
        """Write a question."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()

    def answer(self, limit: float) -> dict:
        """Wait for an answer."""
        try:
            line = self.lines.get(timeout=limit)
        except queue.Empty as error:
            raise LateError(f"not done after {limit:g} s") from error
        if line is None:
            raise RuntimeError("its process has died")
        return json.loads(line)

    def end(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
