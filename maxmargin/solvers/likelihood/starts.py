"""Ascents from several starts: all of them on some rows first, and what is worth it on all rows.

A likelihood of n rows has several tops, and an evaluation takes n^3 operations. On a quarter of the
rows it takes a 64th; the top that an ascent finds there is near one of all rows. So

1. every start ascends on m rows, half of them drawn at random and half these rows' neighbours, side
   by side in threads. Let the best of them explain their targets by D nats better than noise alone;
2. where ``D <= 3 sqrt(2 D)``, m rows do not show what there is to find, and every start ascends on
   all rows;
3. otherwise those tops that are within ``3 sqrt(2 D)`` of the best, each once, ascend from there on
   all rows, the best first. Where none of these has a likelihood on all rows (without noise their
   matrix may be singular in float64 at a top of fewer rows), every start ascends on all rows.

The logarithm of a ratio of likelihoods whose mean is D varies by about sqrt(2 D) (exactly, for two
Gaussians that differ in their means): that is what decides when m rows do not tell two tops
apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin.backends.threads import ALONE
from maxmargin.gram import Gram
from maxmargin.progress import ProblemMonitor
from maxmargin.solvers.driver import Method, Watch
from maxmargin.solvers.likelihood.ascent import Ascent
from maxmargin.solvers.likelihood.problem import MarginalLikelihood

_ROUGH = 1e-3  # tol of ascents on some rows; no less than that of those on all
_APART = 0.5  # logarithm by which two tops differ in some parameter
_LEVEL = 0.02  # and by how much their likelihoods do
_DEVIATIONS = 3.0


@dataclass(frozen=True)
class Search:
    """What ascents from several starts have come to: the best, and how it was found, in words."""

    best: Ascent
    how: str


def maximise(
    problem: MarginalLikelihood,
    starts: np.ndarray,
    bounds: np.ndarray,
    method: Method,
    watch: Watch,
    rows: np.ndarray | None = None,
) -> Search:
    """Maximise a likelihood from several starts (s, p), on ``rows`` first where these are given.

    After a stop the best point so far is returned: that of all rows, or else that of some.
    """
    fit = watch.monitor.fit
    screened: list[Ascent] = []
    worthy: list[Ascent] = []
    said = f"{len(starts)} start(s) on all rows"
    begin = list(starts)
    if rows is not None:
        few = problem.take(rows)
        rough = replace(watch, tol=max(watch.tol, _ROUGH), workers=ALONE)

        def screen(k: int) -> Ascent:
            own = replace(rough, monitor=ProblemMonitor(fit, k))
            ended = method.solve(few, own, start=starts[k], bounds=bounds)
            fit.finished()
            return ended

        screened = watch.workers.map(screen, range(len(starts)))
        worthy = _worthy(screened, few)
        if worthy:
            begin = [ascent.theta for ascent in worthy]
            said = f"{len(starts)} start(s) on {len(rows)} rows, {len(begin)} of them on all"
        else:
            said = f"{len(starts)} start(s) on all rows, {len(rows)} rows being too few"
        fit.problems += len(begin)
    ended: list[Ascent] = []

    def ascend(begin: list[np.ndarray]) -> list[Ascent]:
        """Ascend on all rows; return the ascents that have a likelihood."""
        for start in begin:
            if fit.stopped() is not None and (screened or ended):
                break
            own = replace(watch, monitor=ProblemMonitor(fit, len(screened) + len(ended)))
            ended.append(method.solve(problem, own, start=start, bounds=bounds))
            fit.finished()
        return [ascent for ascent in ended if np.isfinite(ascent.value)]

    reached = ascend(begin)
    if worthy and not reached and fit.stopped() is None:
        said += f", without a likelihood there; {len(starts)} start(s) on all rows"
        fit.problems += len(starts)
        begin += list(starts)
        reached = ascend(list(starts))
    stop = fit.stopped()
    if reached:
        if stop is not None and len(ended) < len(begin):
            said += f", stopped after {len(ended)}"
        return Search(min(reached, key=lambda ascent: ascent.value), said)
    if stop is None:
        raise problem.refused(ended[0].theta)
    known = [ascent for ascent in screened if np.isfinite(ascent.value)]
    theta = min(known, key=lambda ascent: ascent.value).theta if known else starts[0]
    return Search(Ascent(theta, np.inf, np.inf, 0, 0, stop), f"{said}; stopped before all rows")


def paired_rows(gram: Gram, count: int, random: np.random.RandomState) -> np.ndarray:
    """Rows for ascents on some of them: half are drawn, the others are these rows' neighbours.

    Of rows that are drawn alone few lie near each other, and what is to be seen at short distances
    (rows that repeat themselves, small noise) would be missed. Near is what the kernel says.
    """
    order = random.permutation(gram.n)
    drawn = order[: (count + 1) // 2]
    apart = gram.diagonal - 2.0 * gram.rows(drawn)  # squared distances, less a number for each row
    apart[np.arange(len(drawn)), drawn] = np.inf
    chosen = np.union1d(drawn, np.argmin(apart, axis=1))
    more = order[~np.isin(order, chosen)][: count - len(chosen)]
    return np.union1d(chosen, more)


def _worthy(ascents: list[Ascent], problem: MarginalLikelihood) -> list[Ascent]:
    """Tops to go on from, the best first; none where some rows do not show what there is."""
    known = sorted((a for a in ascents if np.isfinite(a.value)), key=lambda a: a.value)
    if not known or known[0].status.stopped:
        return known[:1]
    gain = problem.of_noise_alone() - known[0].value
    slack = _DEVIATIONS * max(2.0 * gain, 0.0) ** 0.5
    if gain <= slack:
        return []
    kept: list[Ascent] = []
    for ascent in known:
        if ascent.value <= known[0].value + slack and not any(_same(ascent, k) for k in kept):
            kept.append(ascent)
    return kept


def _same(one: Ascent, other: Ascent) -> bool:
    """Whether two ascents have come to the same top, or to the same plateau."""
    near = np.abs(one.theta - other.theta).max(initial=0.0) < _APART
    return bool(near or abs(one.value - other.value) < _LEVEL)
