"""Projected conjugate gradients: many variables at once, from face to face of the box.

The problem (see :mod:`maxmargin.duals`), with ``v = -(K b + p)`` minus the gradient:

    minimise  1/2 b' K b + p' b    subject to  lower <= b <= upper,  sum of b fixed per group

Variables at a wall are held. In the others the problem has no walls, and conjugate gradients solve
it, each vector less its mean in each group so that the sums stay:

    repeat
        F = the variables between their walls, and those at one that want to leave it
        r = v on F, less its means;   d = r
        repeat
            step along d to the minimum, ``r'r / d'Kd``, or to the first wall
            at a wall: that variable is held from now on; begin again with the others of F
            d = (the new r) + (r'r new / r'r old) d
        until r is small beside what those at the walls want
    until nobody violates the KKT conditions by tol

A direction without curvature goes to a wall. Where there is none on its way the dual is unbounded:
classes that no hyperplane separates, with ``C = inf``. Such a box is refused, but for the hard
margin as :func:`maxmargin.duals.hard_margin` poses it, whose sums are its walls.

A step is a product of the Gram matrix with a vector, O(n |F|). In memory is the matrix, as far as
the budget allows (what it has no room for is computed at each step), and vectors.

References: Burges, A tutorial on support vector machines for pattern recognition, 1998, section 5;
More and Toraldo, SIAM Journal on Optimization 1(1), 1991 (when to leave a face).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.solution import Status
from maxmargin.solvers.classical.row_run import ENOUGH, RowRun
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualMethod
from maxmargin.solvers.dual.near_level import Pace

_FACE = 0.1  # of the violation: what is left on a face before others are let off their walls
_FLAT = 1e-14  # of the largest diagonal value: curvature that is none


@dataclass(frozen=True)
class ProjectedConjugateGradients(DualMethod):
    """Burges' projected conjugate gradients: all free variables at once.

    A step is a product of the Gram matrix with a vector, O(n^2) operations; the matrix is kept, as
    far as memory allows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> SVC(solver="projected_conjugate_gradients").fit(X, y).certificate_.converged
    True
    """

    def accepts(self, problem: DualProblem) -> str | None:
        """Take every problem in a box that ends somewhere."""
        ends = np.isfinite(problem.lower).all() and np.isfinite(problem.upper).all()
        if ends or problem.hard:
            return None
        return (
            "Conjugate gradients may follow a dual without bound: C is infinite here, and unless a "
            "hyperplane separates the classes this dual has no maximum. Use a finite C, or pose "
            'the hard margin as maxmargin.duals.hard_margin does, as SVC(C=inf) and solver="smo" '
            "do."
        )

    def begin(
        self, problem: DualProblem, watch: Watch, pace: Pace | None = None
    ) -> ProjectedConjugateGradientsRun:
        """Begin at the problem's start."""
        return ProjectedConjugateGradientsRun(problem, watch)


class ProjectedConjugateGradientsRun(RowRun):
    """Projected conjugate gradients at work."""

    def steps(self) -> Generator[None, None, None]:
        """Solve on a face, leave it, until there is nothing to leave it for."""
        host, tol = self.problem.gram.host, ENOUGH * self.watch.tol
        if host.resident:
            host.filled(self.watch.workers)
        while (violation := self.scan()[0]) > tol:
            before = self.n_iter
            face = self.leaving()
            yield from self._on_face(face, _FACE * max(violation, tol))
            if self.n_iter == before:
                self.status = Status.STALLED
                return

    def leaving(self) -> np.ndarray:
        """Whether each variable takes part: it is free, or wants to leave its wall.

        That is, the projection of v on the directions that walls and sums allow is not zero there.
        """
        problem, beta = self.problem, self.beta
        v, rise, fall = (
            problem.scores(self.decision),
            problem.may_rise(beta),
            problem.may_fall(beta),
        )
        level = np.zeros(max(problem.n_groups, 1))
        for j in range(problem.n_groups):
            member = problem.group == j
            level[j] = _level(v[member], rise[member], fall[member])
        pull = v - level[problem.group]
        return (rise & fall) | (rise & (pull > 0)) | (fall & (pull < 0))

    def _on_face(self, face: np.ndarray, enough: float) -> Generator[None, None, None]:
        """Conjugate gradients on a face, and on those of its walls that are met."""
        problem = self.problem
        flat = _FLAT * float(problem.gram.diagonal.max())
        r = self._residual(face)
        d, square = r, float(r @ r)
        while np.abs(r).max(initial=0.0) > enough:
            with np.errstate(divide="ignore", invalid="ignore"):
                walls = np.where(d > 0, problem.upper, problem.lower)
                room = np.where(d != 0, (walls - self.beta) / d, np.inf)
            step = float(room.min())
            if step > 0:  # else someone who came to leave a wall has changed his mind
                Kd = problem.decision(d, self.watch.workers)
                curvature = float(problem.on_rows(d) @ Kd)
                if curvature > flat * float(d @ d):
                    step = min(step, square / curvature)
                inside = np.clip(self.beta + step * d, problem.lower, problem.upper)
                self.beta = np.where(room <= step, walls, inside)
                self.decision += step * Kd
                self.moved = np.flatnonzero(d)
                self.n_iter += 1
                yield
            met = room <= step
            face = face & ~met
            r = self._residual(face)
            last, square = square, float(r @ r)
            d = r if met.any() else r + (square / last) * d

    def _residual(self, face: np.ndarray) -> np.ndarray:
        """Minus the gradient on a face, less its mean in each group; zero elsewhere."""
        problem = self.problem
        r = np.where(face, problem.scores(self.decision), 0.0)
        for j in range(problem.n_groups):
            member = face & (problem.group == j)
            if member.any():
                r[member] -= r[member].mean()
        return r


def _level(v: np.ndarray, rise: np.ndarray, fall: np.ndarray) -> float:
    """Level at which what may rise above it and what may fall below it sum to zero."""

    def members(level: float) -> np.ndarray:
        return (rise & fall) | (rise & (v > level)) | (fall & (v < level))

    ends = np.unique(v[rise | fall])  # the sum falls with the level, and bends at these
    low, high = 0, len(ends) - 1
    while high - low > 1:
        middle = (low + high) // 2
        above = float((v - ends[middle])[members(ends[middle])].sum()) > 0
        low, high = (middle, high) if above else (low, middle)
    if not len(ends):
        return 0.0
    inside = members(0.5 * (ends[low] + ends[high]))
    return float(v[inside].mean()) if inside.any() else 0.5 * float(ends[low] + ends[high])
