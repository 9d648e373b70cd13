"""Linear machines in a search: on each split one path of C, the data checked once."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from maxmargin.linear import C_path, LinearSVC
from maxmargin.multiclass import as_scheme
from maxmargin.selection.held_out import Claim, HeldOut
from maxmargin.selection.plan import REFUSALS, Candidate, grouped
from maxmargin.selection.targets import UNFINISHED

if TYPE_CHECKING:
    from maxmargin.selection.run import SharedFits
    from maxmargin.selection.shared_data import TrainingSide

_LEAST = 1e-3  # seconds: no limit is shorter
_FOLLOWED = "each C begun from the last"
_ON_ITS_OWN = "each C from zero, the data checked once"
# Training rows up to which a fit begins at zero, as one of its own does. Two answers to tol differ
# by up to 0.3 in the scores of some hundred rows. From 1,000 on a path takes a third of the time,
# and of 231 scores none differed by 0.002. Not so with kinks in the loss (5 of 198, by up to 0.015)
# and with all classes in one problem (5 of 9 in units of 1e-6, by up to 0.19).
_SMALL = 1000


def linear_outcomes(fits: SharedFits, candidates: list[Candidate]) -> Iterator[HeldOut]:
    """Yield the outcomes of linear machines that see the same data.

    A machine that has not converged from the answer of the last is not the one that a fit of its
    own would have ended with: it is left to such a fit.
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
            machine = copy.copy(path[0].machine)
            if limit is not None:
                machine.time_limit = max(limit - fits.monitor.seconds, _LEAST)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    X, y, weight, from_zero = side.X, side.y, side.weight, _from_zero(machine, side)
                    machines = C_path(machine, X, y, costs, weight, from_zero=from_zero)
            except REFUSALS as error:
                fits.leave_alone(path, f"Its fit refuses: {error}", side.split)
                continue
            seconds = (time.perf_counter() - began) / len(path)
            how = _ON_ITS_OWN if from_zero else _FOLLOWED
            for candidate, machine in zip(path, machines, strict=True):
                machine.time_limit = None
                own = from_zero and limit is None
                if not (own or machine.certificate_.converged):
                    fits.leave_alone([candidate], UNFINISHED, side.split)
                    continue
                machine._warn_unfinished()
                fitted = _behind(side.transformers, candidate.estimator, machine)
                claim = Claim.of(machine.certificate_)
                yield HeldOut(candidate, side.split, seconds, how, claim, fitted=fitted)


def _from_zero(machine: Any, side: TrainingSide) -> bool:
    """Whether each C begins at zero, since answers to ``tol`` may have other scores."""
    if len(side.y) < _SMALL or not machine._loss.smooth:
        return True
    of_classes = isinstance(machine, LinearSVC)
    return of_classes and as_scheme(machine._asked, len(np.unique(side.y))).direct


def _behind(transformers: Any, estimator: Any, machine: Any) -> Any:
    """Return the fitted estimator: the machine, behind the transformers if there are any."""
    if not isinstance(estimator, Pipeline):
        return machine
    fitted = clone(estimator)
    before = estimator.steps[:-1] if transformers is None else transformers.steps_.steps
    fitted.steps = [*before, (estimator.steps[-1][0], machine)]
    return fitted
