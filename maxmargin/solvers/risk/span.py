"""Few rows of many columns: a risk over coordinates in the span of the rows.

With the l2 penalty the best weights are a combination of the rows (the representer theorem), so
that a problem of n rows has no more than n weights and an intercept, in an orthonormal basis
(:class:`~maxmargin.backends.cpu.linear.span.Span`). Norms, values and the dual are the same, and
systems have the size of the rows, not of the columns. Weights that are shown, and the certificate,
are those of the risk itself.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.backends.systems import DIRECT
from maxmargin.certificate import RiskCertificate
from maxmargin.risk import L2, LinearSolution, Risk
from maxmargin.solution import Status
from maxmargin.solvers.driver import Run, Watch
from maxmargin.solvers.risk.run import RiskCache, RiskMethod, RiskRun

_SHARE = 0.8  # of the columns: so many rows at most
_COLUMNS = 64  # at least
_SURELY = 0.99  # of tol: what rounding may add is not asked for


class SpanRun(RiskRun):
    """A run on coordinates in the span of the rows, seen as one on the weights."""

    def __init__(
        self,
        kind: type[RiskRun],
        risk: Risk,
        watch: Watch,
        start: LinearSolution | None,
        cache: RiskCache | None,
    ) -> None:
        super().__init__(risk, watch, start, cache)
        span = self.span = risk.design.span
        if start is not None:
            start = replace(start, theta=span.coordinates(start.theta), f=None)
        self.cache.in_span = self.cache.in_span or RiskCache()
        surely = replace(watch, tol=_SURELY * watch.tol)
        self.inner = kind(risk.in_span(), surely, start, self.cache.in_span)
        self.moved = False  # since the weights were made of the coordinates

    def steps(self) -> Generator[None, None, None]:
        """Those of the run on the coordinates."""
        inner = self.inner
        while inner.status is None:
            inner.advance(self.allowed)
            self.n_iter, self.moved = inner.n_iter, True
            yield
        self.status = inner.status

    def _follow(self) -> None:
        """Stand where the coordinates are."""
        if self.moved:
            self.stand(self.span.weights(self.inner.theta), self.inner.s)
            self.moved = False

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.inner.name

    @property
    def variables(self) -> np.ndarray:
        """The weights."""
        self._follow()
        return self.theta

    @property
    def certificate(self) -> RiskCertificate:
        """Both objectives at the weights as they are, recomputed from the data; only once."""
        self._follow()
        return super().certificate

    def dual_points(self, f: np.ndarray) -> list[np.ndarray]:
        """Slopes that the run on the coordinates would be judged by."""
        return self.inner.dual_points(f)

    def solution(self, status: Status) -> LinearSolution:
        """Return the weights of what that run would return, judged anew."""
        found = self.inner.solution(status)
        self.stand(self.span.weights(found.theta), found.s if len(found.s) else None)
        self.moved = False
        return super().solution(status)


class SystemMethod(RiskMethod):
    """A method whose steps solve systems as large as the weights are many."""

    def begin(
        self,
        problem: Any,
        watch: Watch,
        start: LinearSolution | None = None,
        cache: RiskCache | None = None,
    ) -> Run:
        """Begin from an earlier answer where there is one; in the span of the rows where it pays.

        Parameters
        ----------
        problem : RegularisedRisk or SoftmaxRisk
        watch : Watch
            A step is a pass over the data.
        start : LinearSolution, optional
        cache : RiskCache, optional
            From a run on the same problem at other costs.
        """
        if spanned(problem):
            return SpanRun(self.run, problem, watch, start, cache)
        return super().begin(problem, watch, start, cache)


def spanned(risk: Risk) -> bool:
    """Whether the rows of a risk are so few that their span is soon found, and much smaller."""
    n, d = risk.design.n, risk.design.features
    few = n <= _SHARE * d and d >= _COLUMNS and n * n * d <= DIRECT**3
    return few and risk.design.in_memory and not risk.design.sparse and risk.penalty == L2
