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

from maxmargin.linear import C_path
from maxmargin.selection.held_out import Claim, HeldOut
from maxmargin.selection.plan import REFUSALS, Candidate, grouped

if TYPE_CHECKING:
    from maxmargin.selection.run import SharedFits

_LEAST = 1e-3  # seconds: no limit is shorter
_FOLLOWED = "each C begun from the last"
_FINER = 0.1  # of tol, for a loss with kinks: two answers to tol have scores up to 0.003 apart


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
    limit = fits.monitor.time_limit
    for side in fits.training_sides(candidates) if paths else ():
        for path in paths:
            fits.workers.check()
            began = time.perf_counter()
            costs = [candidate.machine.C for candidate in path]
            machine, tol = copy.copy(path[0].machine), path[0].machine.tol
            if not machine._loss.smooth:
                machine.tol = _FINER * tol
            if limit is not None:
                machine.time_limit = max(limit - fits.monitor.seconds, _LEAST)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    machines = C_path(machine, side.X, side.y, costs, side.weight)
            except REFUSALS as error:
                fits.leave_alone(path, f"Its fit refuses: {error}", side.split)
                continue
            seconds = (time.perf_counter() - began) / len(path)
            for candidate, machine in zip(path, machines, strict=True):
                machine.time_limit, machine.tol = None, tol
                if not machine.certificate_.converged:
                    reason = "It has not converged along the path: a fit of its own may end apart."
                    fits.leave_alone([candidate], reason, side.split)
                    continue
                fitted = _behind(side.transformers, candidate.estimator, machine)
                claim = Claim.of(machine.certificate_)
                yield HeldOut(candidate, side.split, seconds, _FOLLOWED, claim, fitted=fitted)


def _behind(transformers: Any, estimator: Any, machine: Any) -> Any:
    """Return the fitted estimator: the machine, behind the transformers if there are any."""
    if not isinstance(estimator, Pipeline):
        return machine
    fitted = clone(estimator)
    before = estimator.steps[:-1] if transformers is None else transformers.steps_.steps
    fitted.steps = [*before, (estimator.steps[-1][0], machine)]
    return fitted
