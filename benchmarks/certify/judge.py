"""What a problem is, what is claimed of its answer, and the verdict on the claims."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import InseparableError

LIMIT, KILLED = 20.0, 60.0  # seconds of a process's own time
KINDS = ("held", "refused", "false", "above tol", "slow", "crash")


@dataclass
class Problem:
    """One random problem: how it is fitted, and how the answer is judged."""

    about: str
    fit: Callable[[], Any]
    judge: Callable[[Any, Claims], None]


@dataclass
class Verdict:
    """What came of a problem.

    ``kind`` is "held", "refused", or the way in which it failed; ``ratio`` is the largest of all
    truths over what was claimed of them, at most one where every claim holds.
    """

    seed: int
    family: str
    kind: str
    seconds: float = 0.0
    ratio: float = 0.0
    converged: bool = False
    text: str = ""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return self.kind not in ("held", "refused")


class Claims:
    """The claims on one answer; the first that fails decides."""

    def __init__(self) -> None:
        self.kind, self.text, self.ratio, self.converged = "held", "", 0.0, False

    def at_most(self, what: str, truth: Any, claimed: Any, room: Any = 0.0) -> None:
        """Compare a truth, known to ``room``, with the bound that was claimed of it."""
        self._compare("false", what, truth, claimed, room)

    def to_tol(self, what: str, truth: Any, tol: float, room: Any = 0.0) -> None:
        """Compare a truth of a converged answer with ``tol``."""
        self._compare("above tol", what, truth, tol, room)

    def _compare(self, kind: str, what: str, truth: Any, claimed: Any, room: Any) -> None:
        truth, claimed = np.longdouble(truth), np.longdouble(claimed)
        beyond = truth - np.longdouble(room)
        if claimed > 0 and np.isfinite(beyond):
            self.ratio = max(self.ratio, float(max(beyond, 0.0) / claimed))
        if claimed == np.inf and not (self.converged and what == "gap"):
            return  # nothing is claimed
        if not beyond <= claimed:  # also for nan
            self.fail(kind, f"{what}: {truth:.9g} (known to {room:.2g}) > {claimed:.9g}")

    def equal(self, what: str, truth: Any, claimed: Any, room: Any) -> None:
        """Compare arrays or numbers that are claimed to be the truth, but for ``room``."""
        truth, claimed = np.asarray(truth), np.asarray(claimed)
        if truth.shape != claimed.shape:
            self.fail("false", f"{what}: shape {claimed.shape} for {truth.shape}")
        elif truth.size:
            off, room = np.abs(truth - claimed), np.broadcast_to(room, truth.shape)
            worst = np.argmax(np.nan_to_num(off - room, nan=np.inf))
            of = f"{what}: {claimed.flat[worst]:.12g} for {truth.flat[worst]:.12g}, off by"
            self.at_most(of, off.flat[worst], room.flat[worst])

    def sure(self, what: str, so: bool) -> None:
        """Note something that must be so."""
        if not so:
            self.fail("false", what)

    def fail(self, kind: str, text: str) -> None:
        """Note the first failure."""
        if self.kind == "held":
            self.kind, self.text = kind, text


def judge(problem: Problem, seed: int = -1, family: str = "") -> Verdict:
    """Fit a problem and hold its claims against the truth."""
    claims, started, seconds = Claims(), time.process_time(), 0.0
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            fitted = problem.fit()
            seconds = time.process_time() - started
            if seconds > LIMIT:  # the first fits of a process compile
                started = time.process_time()
                fitted = problem.fit()
                seconds = time.process_time() - started
            problem.judge(fitted, claims)
    except (ValueError, InseparableError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if "maxmargin" in last.rpartition("benchmarks")[2] or "sklearn" in last:
            claims.kind, claims.text = "refused", f"{type(error).__name__}: {error}"
        else:
            claims.kind, claims.text = "crash", _short(error)
    except Exception as error:  # every other exception is what is searched for
        claims.kind, claims.text = "crash", _short(error)
    seconds = seconds or time.process_time() - started
    if claims.kind in ("held", "refused") and seconds > LIMIT:
        claims.kind, claims.text = "slow", f"{seconds:.0f} s"
    text = f"{claims.text} [{problem.about}]" if claims.kind != "held" else ""
    return Verdict(seed, family, claims.kind, seconds, claims.ratio, claims.converged, text)


def _short(error: BaseException) -> str:
    """The error, and the last lines of code on the way to it."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return f"{error!r} at " + ", ".join(f"{f.filename}:{f.lineno} {f.line}" for f in frames)
