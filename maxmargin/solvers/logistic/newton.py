"""Kernel logistic regression by Newton's method: reweighted least squares in feature space.

At values F with ``beta = c (t - p)`` and curvatures ``W = G G'`` the quadratic model is least for
``a = beta + G u`` with

    (I + G'K G) u = G'(F - K beta),      sum_i a_i = 0 with an intercept

which has eigenvalues of one at least. It is solved by conjugate gradients on the subspace of that
sum, whose multipliers are the intercepts, with one of two preconditioners for each function:

    cholesky     the factor of ``I + D^(1/2) K D^(1/2)``, D the diagonal of W. For two classes that
                 is the matrix itself, and one step solves the system
    low rank     the same with ``K ~ L L'``, pivoted Cholesky with random pivots, made once

The right side vanishes at the optimum, so few steps are enough far from it. A step is halved until
the objective falls. With an intercept the Gram matrix is centred, which changes nothing but the
digits of data far from the origin. Where costs are large beside the kernel's values, W is small
only near the optimum, and far from it the system has no digits: then smaller costs come first, each
of them from where the one before has ended.

References: Green and Yandell, 1985; Rasmussen and Williams, Gaussian Processes for Machine
Learning, 2006, chapter 3; Gould, Hribar and Nocedal, SIAM J. Scientific Computing 23, 2001
(conjugate gradients with constraints).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import numpy as np

from maxmargin.backends.dense import BlockCholesky, NotPositiveError
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.gram import Definiteness
from maxmargin.memory import megabytes
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.logistic.likelihood import Curvature
from maxmargin.solvers.logistic.problem import LogisticCertificate, LogisticProblem
from maxmargin.solvers.products import GramProducts
from maxmargin.solvers.ridge.preconditioner import Preconditioner, RandomPivots

_SHARE = 0.5  # of the memory, for preconditioners
_ROOTS, _DEVICE_ROOTS = 10.0, 2.0  # of n: a preconditioner's columns for one function
_ENOUGH = 0.1  # of the part of ``I + G'KG`` that is one: what a trace may lack
_FORCING = 1e-2  # of what a step wins: how much of it a system may leave
_AHEAD = 0.2  # times tol: relative gap at which a run ends, and a system is solved well enough
_DESCENT = 1e-4  # part of the slope that a step has to win
_RESOLVED = 1e-14  # part of an objective that its rounding is
_SHORTEST = 1e-10  # step that is tried
_LARGE, _STAGE, _LOOSE = 100.0, 10.0, 0.1  # cost times K_ii; its growth, and gap in between
_EPS = float(np.finfo(np.float64).eps)
_STEPS = 1000  # of conjugate gradients in one system, where digits are at their end

Inverse = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class LogisticSolution:
    """An answer: coefficients (n, m) and intercepts (m,), with their certificate."""

    coefficients: np.ndarray
    intercept: np.ndarray
    n_iter: int
    certificate: LogisticCertificate


@dataclass(frozen=True)
class KernelNewton(Method[LogisticProblem, LogisticSolution]):
    """Newton's method in feature space; a step is a system solved by conjugate gradients.

    Parameters
    ----------
    factorised : bool, default=False
        Precondition by Cholesky factors, a matrix for each function, and not by one of low rank.
    rank : int, optional
        Columns of low rank at most; by default ``10 sqrt(n)``, on a GPU ``2 sqrt(n)``, over the
        root of the number of functions, or as many as half of the memory has room for.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.logistic.likelihood import Likelihood
    >>> from maxmargin.solvers.logistic.problem import LogisticProblem
    >>> gram = Gram.of(np.array([[-1.0], [1.0]]), Linear())
    >>> problem = LogisticProblem(gram, Likelihood(np.array([0, 1]), 2, np.ones(2)))
    >>> found = KernelNewton().solve(problem)
    >>> found.certificate.converged
    True
    """

    factorised: bool = False
    rank: int | None = None

    def accepts(self, problem: LogisticProblem) -> str | None:
        """None where the matrices have room; else a sentence."""
        wanted = 8 * problem.n**2 * (1 + problem.m)
        if not self.factorised or wanted <= problem.gram.memory:
            return None
        return (
            f"{1 + problem.m} matrices of {problem.n} rows and columns take "
            f"{megabytes(wanted)}, and {megabytes(problem.gram.memory)} are allowed: "
            "raise cache_size, or use solver='newton-cg', which does without them."
        )

    def begin(self, problem: LogisticProblem, watch: Watch) -> Run:
        """Begin at zero, or where the problem says."""
        return KernelNewtonRun(problem, watch, self)


class KernelNewtonRun(Run):
    """Newton's method at work on coefficients A (n, m) and intercepts b (m,)."""

    solves_for = "multipliers"
    words = "relative gap {violation:.2g}"

    def __init__(self, problem: LogisticProblem, watch: Watch, method: KernelNewton) -> None:
        self.whole = self.problem = problem
        self.watch, self.method, self.tol = watch, method, watch.tol
        self.workers = Workers(watch.workers.count, watch.stopped)
        n, m, gram = problem.n, problem.m, problem.gram
        self.A, self.KA, self.b = np.zeros((n, m)), np.zeros((n, m)), np.zeros(m)
        self.b = self.intercept_at_zero = problem.intercept(self.KA, self.b)
        self.primal = self.gap = problem.primal(self.A, self.KA, self.b)
        self.primal_at_zero = self.primal
        roots = _DEVICE_ROOTS if gram.on_device else _ROOTS
        usual = roots * (n / m) ** 0.5
        room = _SHARE * gram.memory / (8 * n * (1 + m))
        self.rank = int(min(usual, room, n)) if method.rank is None else min(method.rank, n)
        self.products: GramProducts | None = None
        self.systems = 0  # steps of conjugate gradients

    @property
    def variables(self) -> np.ndarray:
        """The coefficients as they are."""
        return self.A

    def measure(self) -> Measure:
        """Relative gap, and both objectives."""
        return Measure(self._violation(), self.primal, self.primal - self.gap, self.gap)

    def _violation(self) -> float:
        return self.gap / max(self.primal, float(np.finfo(np.float64).tiny))

    def steps(self) -> Generator[None, None, None]:
        """Newton's steps until the gap is small."""
        try:
            yield from self._prepare()
            for stage in self._stages():
                self.problem = stage
                self.tol = self.watch.tol if stage is self.whole else _LOOSE
                yield from self._converge()
        except NotPositiveError:
            raise ValueError(self.problem.refusal()) from None
        except StoppedError:
            yield  # to the driver, which knows why

    def _stages(self) -> list[LogisticProblem]:
        """Return the problem after those of smaller costs that lead there."""
        problem, likelihood = self.whole, self.whole.likelihood
        if problem.start is not None:
            return [problem]
        largest = float((likelihood.cost * problem.gram.diagonal).max())
        count = max(int(np.ceil(np.log(largest / _LARGE) / np.log(_STAGE))), 0) if largest else 0
        costs = [likelihood.cost / _STAGE**k for k in range(count, 0, -1)]
        parts = [replace(problem, likelihood=replace(likelihood, cost=cost)) for cost in costs]
        return [*parts, problem]

    def _converge(self) -> Generator[None, None, None]:
        """Take Newton's steps until the gap is small."""
        self.b = self.problem.intercept(self.KA, self.b)
        self._look()
        while self._violation() > _AHEAD * self.tol and self.status is None:
            yield
            before = self.gap
            yield from self._step()
            self.n_iter += 1
            self._look()
            if not self.moved or (self.moved < _RESOLVED * self.primal and self.gap > before / 2):
                break
        if self._violation() > self.tol and self.problem is self.whole:
            self.status = Status.STALLED

    def _prepare(self) -> Generator[None, None, None]:
        """Matrix, pivots and the values of the start."""
        problem, gram = self.problem, self.problem.gram
        kept = self.method.factorised or (not gram.on_device and 16 * gram.n**2 <= gram.memory)
        self.products = GramProducts(gram, kept, problem.free_intercept, self.workers)
        yield
        self.factor = None
        if not self.method.factorised:
            enough = _ENOUGH / float(problem.likelihood.cost.max())
            most, seed = self.rank, self.watch.seed
            diagonal = self.products.diagonal
            factor = RandomPivots(self.products.rows, diagonal, most, seed, self.workers)
            while factor.grow(enough):
                yield
            self.factor = factor
        if problem.start is not None:
            A, b = problem.start
            KA = self.products @ A
            b = problem.intercept(KA, np.zeros_like(b) if problem.free_intercept else b)
            if problem.primal(A, KA, b) < self.primal:
                self.A, self.KA, self.b = A.copy(), KA, b

    def _look(self) -> None:
        """Take the beta of the present values, the objective and the gap."""
        problem = self.problem
        assert self.products is not None
        self.beta = problem.bounding(self.KA + self.b)
        self.Kbeta = self.products @ self.beta
        self.primal = problem.primal(self.A, self.KA, self.b)
        self.gap = 0.5 * float(np.vdot(self.A - self.beta, self.KA - self.Kbeta))
        if not self.gap >= 0 or not self.beta.any():
            self.gap = self.primal

    def _step(self) -> Generator[None, None, None]:
        """Solve the quadratic model and go towards its least, as far as the objective falls."""
        problem, curvature = self.problem, self.problem.likelihood.curvature(self.KA + self.b)
        inverse = yield from self._inverse(curvature)
        system = ConstrainedSystem(curvature, inverse, problem.free_intercept)
        right = curvature.down(self.KA - self.Kbeta)
        slack = self.KA - self.Kbeta
        u, Gu, KGu = np.zeros_like(right), np.zeros_like(right), np.zeros_like(right)
        right, ahead = system.conditioned(right)
        direction = ahead
        square = float(np.vdot(right, ahead))
        enough = 2 * _AHEAD**2 * self.tol * self.primal
        for _ in range(_STEPS):
            A, KA = self.beta + Gu, self.Kbeta + KGu
            slope = float(np.vdot(slack, A - self.A))
            if (square <= max(_FORCING * -slope, enough) and slope < 0) or not square > 0:
                break
            V = curvature.up(direction)
            KV = self._product(V)
            image = direction + curvature.down(KV)
            along = float(np.vdot(direction, image))
            self._refuse_indefinite(V, KV)
            if not along > 0:
                break
            length = square / along
            u, Gu, KGu = u + length * direction, Gu + length * V, KGu + length * KV
            right, ahead = system.conditioned(right - length * image)
            last, square = square, float(np.vdot(right, ahead))
            direction = ahead + (square / last) * direction
            self.systems += 1
            yield
        self._descend(A - self.A, KA - self.KA, slope)

    def _descend(self, dA: np.ndarray, dKA: np.ndarray, slope: float) -> None:
        """Halve a step until the objective, with its best intercepts, falls by enough."""
        problem, length, self.moved = self.problem, 1.0, 0.0
        rounding = _RESOLVED * self.primal  # below which a step is right if it is small
        while length >= _SHORTEST and slope < 0:
            A, KA = self.A + length * dA, self.KA + length * dKA
            b = problem.intercept(KA, self.b)
            falls = problem.primal(A, KA, b) <= self.primal + _DESCENT * length * slope + rounding
            if falls and np.vdot(A, KA) >= -rounding:  # less is a square that has no digits
                self.A, self.KA, self.b, self.moved = A, KA, b, -slope * length
                return
            length *= 0.5

    def _product(self, V: np.ndarray) -> np.ndarray:
        assert self.products is not None
        return self.products @ V

    def _refuse_indefinite(self, V: np.ndarray, KV: np.ndarray) -> None:
        """Refuse a kernel that has shown a negative square, beyond rounding."""
        if self.problem.gram.spectrum is Definiteness.PROVEN:
            return
        if float(np.vdot(V, KV)) < -1e-8 * float(np.linalg.norm(V) * np.linalg.norm(KV)):
            raise ValueError(self.problem.refusal())

    # -- preconditioners -----------------------------------------------------------------------

    def _inverse(self, curvature: Curvature) -> Generator[None, None, Inverse]:
        """Make what stands in for the inverse of ``I + D^(1/2) K D^(1/2)``, column by column."""
        if self.factor is not None:
            return self._low_rank(curvature)
        assert self.products is not None
        assert self.products.K is not None
        factors = []
        for root in curvature.root.T:
            matrix = self.products.K * root
            matrix *= root[:, None]
            factor = BlockCholesky(matrix, np.ones(len(root)), self.workers)
            while factor.done < factor.n:
                factor.advance()
                yield
            factors.append(factor)

        def apply(r: np.ndarray) -> np.ndarray:
            columns = zip(factors, r.T, strict=True)
            return np.column_stack([factor.solve(column[:, None]) for factor, column in columns])

        return apply

    def _low_rank(self, curvature: Curvature) -> Inverse:
        """``D^(1/2) L L' D^(1/2)`` and a diagonal, of one and of what L lacks."""
        factor = self.factor
        assert factor is not None
        scales = 1.0 / np.sqrt(1.0 + curvature.root**2 * factor.rest[:, None])
        inverses = [
            Preconditioner(factor.F * (root * scale)[:, None], 1.0, self.workers)
            for root, scale in zip(curvature.root.T, scales.T, strict=True)
        ]

        def apply(r: np.ndarray) -> np.ndarray:
            columns = zip(inverses, (scales * r).T, strict=True)
            solved = [inverse @ column[:, None] for inverse, column in columns]
            return scales * np.column_stack(solved)

        return apply

    # -- the answer ----------------------------------------------------------------------------

    def solution(self, status: Status) -> LogisticSolution:
        """Return the coefficients as they are, judged anew unless someone does not want to wait."""
        problem, tol = self.whole, self.watch.tol
        if self.problem is not problem:
            self.b = problem.intercept(self.KA, self.b)
            self.primal = self.gap = problem.primal(self.A, self.KA, self.b)
        how = "cholesky" if self.method.factorised else f"preconditioner of rank {self.rank}"
        words = f"Newton's method, {self.n_iter} steps, {how}"
        if self.products is None:  # nothing has begun
            judged = problem.judged(self.primal, 0.0, 0.0, words, status, tol)
            return LogisticSolution(self.A, self.b, self.n_iter, judged)
        A, b, workers = self.A, self.b, self.watch.workers
        if problem.free_intercept:  # the sum has gathered rounding, which is nothing once centred
            A = A - A.mean(axis=0)
        KA = problem.gram.matmat(A, workers=workers)
        if problem.free_intercept:
            b = problem.intercept(KA, b + (self.KA - KA).mean(axis=0))
        primal, most = problem.primal(A, KA, b), (1.0 + problem.n * _EPS) * self.primal_at_zero
        if not 0 <= primal <= most:  # values that are not centred may have no digits
            A, KA, primal = np.zeros_like(A), np.zeros_like(KA), self.primal_at_zero
            b = self.intercept_at_zero
        if status.stopped:
            judged = problem.judged(primal, self.primal - self.gap, 0.0, words, status, tol)
        else:
            judged = problem.certificate(A, KA, b, workers, words, status, tol)
        return LogisticSolution(A, b, self.n_iter, judged)


class ConstrainedSystem:
    """Residuals of Newton's system, preconditioned on the subspace that it is solved in.

    The subspace is that of ``sum_i G_i u_i = 0``, where there are intercepts, and of ``Q u = u``.
    """

    def __init__(self, curvature: Curvature, inverse: Inverse, constrained: bool) -> None:
        self.curvature, self.inverse, self.constrained = curvature, inverse, constrained
        if not constrained:
            return
        n, m = curvature.root.shape
        units = (np.broadcast_to(unit, (n, m)) for unit in np.eye(m))
        self.across = [self._inverted(curvature.down(unit)) for unit in units]
        self.square = np.array([self._sums(Y) for Y in self.across])
        self.pseudo = np.linalg.pinv((self.square + self.square.T) / 2, rcond=1e-10, hermitian=True)

    def _inverted(self, r: np.ndarray) -> np.ndarray:
        return self.curvature.project(self.inverse(self.curvature.project(r)))

    def _sums(self, u: np.ndarray) -> np.ndarray:
        return self.curvature.up(u).sum(axis=0)

    def conditioned(self, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residual without the intercepts' part, which is no concern of it, and its direction."""
        ahead = self._inverted(residual)
        if not self.constrained:
            return residual, ahead
        multipliers = self.pseudo @ self._sums(ahead)
        for multiplier, Y in zip(multipliers, self.across, strict=True):
            ahead = ahead - multiplier * Y
        part = self.curvature.down(np.broadcast_to(multipliers, residual.shape))
        return residual - part, ahead
