"""Linear machines in a search: on each split one path of C, the data checked once."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from maxmargin.backends.threads import StoppedError
from maxmargin.linear import C_path
from maxmargin.selection.held_out import HeldOut
from maxmargin.selection.plan import REFUSALS, Candidate, grouped

if TYPE_CHECKING:
    from maxmargin.selection.run import SharedFits

_LEAST = 1e-3  # seconds: no limit is shorter
_FOLLOWED = "each C begun from the last"


def linear_outcomes(fits: SharedFits, candidates: list[Candidate]) -> Iterator[HeldOut]:
    """Yield the outcomes of linear machines that see the same data.

    A machine that has not converged along its path is not the one that a fit of its own would
    have ended with: it is left to such a fit.
    """
    paths = []
    for path in grouped(candidates, Candidate.same_problem):
        if len(path) == 1 and (len(candidates) == 1 or not path[0].steps):
            fits.leave_alone(path, "No other candidate differs from it in C only.")
        else:
            paths.append(path)
    steps, limit = candidates[0].steps, fits.monitor.time_limit
    for number, train, test in fits.splits if paths else ():
        transformers = None
        X, weight = fits.manners.X, fits.sample_weight
        if steps:
            before = candidates[0].estimator[:-1]
            made, failure = fits.manners.transformed(before, train, test)
            if failure is not None:
                fits.leave_alone(candidates, f"The transformers fail: {failure}", number)
                continue
            transformers, X = made.steps_, made.train_
        else:
            X = _safe_indexing(X, train)
        y = _safe_indexing(fits.manners.y, train)
        weight = None if weight is None else _safe_indexing(weight, train)
        for path in paths:
            if fits.monitor.stopped():
                raise StoppedError
            began = time.perf_counter()
            costs = [candidate.machine.C for candidate in path]
            machine = copy.copy(path[0].machine)
            if limit is not None:
                machine.time_limit = max(limit - fits.monitor.seconds, _LEAST)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    machines = C_path(machine, X, y, costs, weight)
            except REFUSALS as error:
                fits.leave_alone(path, f"Its fit refuses: {error}", number)
                continue
            seconds = (time.perf_counter() - began) / len(path)
            for candidate, machine in zip(path, machines, strict=True):
                machine.time_limit = None
                if not machine.certificate_.converged:
                    reason = "It has not converged along the path: a fit of its own may end apart."
                    fits.leave_alone([candidate], reason, number)
                    continue
                fitted = _behind(transformers, candidate.estimator, machine)
                yield HeldOut(candidate, number, seconds, _FOLLOWED, fitted=fitted)


def _behind(transformers: Any, estimator: Any, machine: Any) -> Any:
    """Return the fitted estimator: the machine, behind the transformers if there are any."""
    if not isinstance(estimator, Pipeline):
        return machine
    fitted = clone(estimator)
    before = estimator.steps[:-1] if transformers is None else transformers.steps
    fitted.steps = [*before, (estimator.steps[-1][0], machine)]
    return fitted
