"""The four quadratic programmes of a support vector machine, handed to an interior-point library.

=====  ==========  =========================================================  ====================
SVM1   hard,       min 1/2 ||w||^2            y_i (w . x_i + b) >= 1          M + 1 variables
       primal
SVM2   hard, dual  max 1' a - 1/2 a' Q a      y' a = 0, a >= 0                N
SVM3   soft,       min 1/2 ||w||^2 + C 1' xi  y_i (w . x_i + b) >= 1 - xi_i,  M + 1 + N
       primal                                 xi >= 0
SVM4   soft, dual  max 1' a - 1/2 a' Q a      y' a = 0, 0 <= a <= C           N
=====  ==========  =========================================================  ====================

with M features, N rows and ``Q_ij = y_i y_j k(x_i, x_j)`` (seed 004). :class:`QuadraticProgramme`
is SVM2, SVM4 and the dual of every other kernel machine, in the signed variables of
:mod:`maxmargin.duals`; SVM2 is posed there as the nearest points of two hulls, which is the same
up to the factor rho and has a solution even where no hyperplane separates.
:class:`PrimalProgramme` is SVM1 and SVM3, and every machine with the l2 penalty whose loss is
piecewise linear or quadratic: with the conjugate of the loss on [low, high]
(:class:`~maxmargin.losses.Shape`), on either side of its flat part

    V(u) = min  bound |r| + q^2 / (2 quadratic)    such that  r + q = what u is beyond that part.

Clarabel solves them by a primal-dual interior-point method: some ten to twenty steps, whatever the
data, and a factorisation in each. Its iterates are strictly between the walls. Of an answer of the
dual, what a step along its own coordinate would take to its wall is put there, and the sums are
made right again: a feasible point, which is judged by its certificate like any other.

References: seed 004; Goulart and Chen, Clarabel, arXiv:2405.12762; Mehrotra, SIAM J. Optimization
2, 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import memory
from maxmargin.certificate import RiskCertificate
from maxmargin.duals import DualProblem
from maxmargin.evaluation import InseparableError
from maxmargin.risk import RegularisedRisk
from maxmargin.solution import Solution, Status
from maxmargin.solvers.classical.projected_gradient import nearest, projected
from maxmargin.solvers.driver import Measure, Run, Watch
from maxmargin.solvers.dual.method import DualMethod, DualRun, sums
from maxmargin.solvers.dual.near_level import Pace
from maxmargin.solvers.risk.run import RiskMethod, RiskRun

_STEPS = 200  # of interior points; twenty are many
_FIRST, _SECOND = 1e-10, 1e-12  # tolerances of the library, and where the first was not enough
_DENSE, _SPARSE = 64, 160  # bytes for each entry of Q, and of X: copies, indices and factors
_SHARE = 0.5  # of the free memory that these may take
_LARGEST = 20_000  # variables that nobody wants to wait for: an hour and more
_DRIFT = 1e-12  # of the variables, that a sum may be off
_TINY = np.finfo(np.float64).tiny


class Answer(NamedTuple):
    """A point x, the multipliers z of the constraints, how it ended, and after how many steps."""

    x: np.ndarray
    z: np.ndarray
    status: Status
    steps: int


@dataclass(frozen=True)
class Programme:
    """Minimise ``1/2 x' P x + q' x`` with ``A x = b`` in the first rows, ``<= b`` in the others.

    Parameters
    ----------
    P, A : scipy.sparse arrays
        P has its upper triangle only.
    q, b : float arrays
    equalities : int
        Rows of A that are equalities.
    unit, value : float, default=1
        Sizes of x and of the objective: the library's tolerances are for numbers near one.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from maxmargin.solvers.classical.qp import Programme
    >>> nearest = Programme(sp.eye_array(2), np.zeros(2), sp.csc_array([[1.0, 1.0]]), np.ones(1), 1)
    >>> answer = nearest.solve()
    >>> answer.x.round(6), answer.status.value
    (array([0.5, 0.5]), 'converged')
    """

    P: Any
    q: np.ndarray
    A: Any
    b: np.ndarray
    equalities: int = 0
    unit: float = 1.0
    value: float = 1.0

    def solve(
        self, tol: float = 1e-8, steps: int = _STEPS, look: Callable[[Any], bool] | None = None
    ) -> Answer:
        """Solve it.

        ``look`` is called with the library's account of every step, and ends it by True. Where
        nothing is feasible the status is ``"infeasible"``, and z is the proof; whatever else the
        library does not call solved is ``"stalled"``, or ``"max_iter"``.
        """
        clarabel = _library()
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_iter, settings.max_threads = False, steps, 1
        settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tol
        rest = len(self.b) - self.equalities
        cones = [clarabel.ZeroConeT(self.equalities), clarabel.NonnegativeConeT(rest)]
        slope = self.value / self.unit
        P, A = sp.csc_matrix(self.P * (self.unit / slope)), sp.csc_matrix(self.A)
        solver = clarabel.DefaultSolver(P, self.q / slope, A, self.b / self.unit, cones, settings)
        raised: list[BaseException] = []

        def ends(info: Any) -> bool:
            try:
                return look is not None and look(info)
            except BaseException as error:  # which the library would print, and go on
                raised.append(error)
                return True

        solver.set_termination_callback(ends)
        found = solver.solve()
        if raised:
            raise raised[0]
        kinds = clarabel.SolverStatus
        status = {
            kinds.Solved: Status.CONVERGED,
            kinds.PrimalInfeasible: Status.INFEASIBLE,
        }.get(found.status, Status.MAX_ITER if found.iterations >= steps else Status.STALLED)
        x, z = self.unit * np.array(found.x), slope * np.array(found.z)
        return Answer(x, z, status, found.iterations)


def _library() -> Any:
    try:
        import clarabel
    except ImportError:
        raise ImportError(
            "solver='qp' hands its problem to the library Clarabel, which is not installed: "
            "pip install 'maxmargin[qp]', or take another solver."
        ) from None
    return clarabel


def _refusal(
    what: str, size: int, needed: float, instead: str, allowed: int | None = None
) -> str | None:
    """Return why a programme is too large for the library or for the allowed bytes, or None."""
    if allowed is not None and needed > allowed:
        return (
            f"solver='qp' factorises a matrix with a row for each of {size:,} {what}, which takes "
            f"{memory.megabytes(needed)}, and cache_size allows {memory.megabytes(allowed)}: raise "
            f"cache_size, leave it at 'auto', or use {instead}."
        )
    free = _SHARE * memory.available()
    if size <= _LARGEST and needed <= free:
        return None
    return (
        f"solver='qp' factorises a matrix with a row for each of {size:,} {what}: some {size:,}^3 "
        f"operations a step, and {memory.megabytes(needed)}. It takes up to {_LARGEST:,}, and "
        f"{memory.megabytes(free)} as memory is now. Use {instead}."
    )


def _handed(run: Any, programme: Programme, sign: float) -> Generator[None, None, Answer]:
    """Let the library solve the programme of a run, which stands at its iterates.

    ``sign`` is -1 for a programme that is a dual. The library shows an iterate at its end only: who
    wants to see the steps has it begin anew for each, and go one step further.
    """
    watch = run.watch
    tol = _SECOND if watch.spent else _FIRST

    def look(info: Any) -> bool:
        ends = sorted(sign * programme.value * np.array([info.cost_primal, info.cost_dual]))
        left = max(info.res_primal, info.res_dual, info.gap_rel)
        run.seen = Measure(left, ends[1], ends[0], ends[1] - ends[0])
        if watch.monitor.trace is not None:
            return watch.stopped() is not None
        run.n_iter = info.iterations
        return watch.look(run) is not None

    while True:
        wanted = min(run.n_iter + run.allowed, _STEPS)
        answer = programme.solve(tol, wanted, look)
        run.n_iter = answer.steps
        run.take(answer)
        if watch.stopped() is None and (answer.status is not Status.MAX_ITER or wanted == _STEPS):
            return answer
        yield


# -- the dual --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuadraticProgramme(DualMethod):
    """The dual as one quadratic programme, solved by Clarabel's interior points.

    A step factorises a dense matrix of all variables: N^3 / 3 operations for N rows (regression has
    two variables a row, and eight times as many); memory is some 60 N^2 bytes. It takes ten to
    twenty steps, however hard the problem. More than 20,000 variables, or than memory has room for,
    it refuses.

    In a trace, the violation is the library's own, the largest of its residuals, and variables and
    objectives are those of the feasible point next to an iterate. The library is run anew up to
    each step that is recorded, since it shows its iterates at its end only.

    Needs ``pip install 'maxmargin[qp]'``.

    Parameters
    ----------
    memory : int, optional
        Bytes that it may take; by default half of what is free. ``solver="qp"`` of a kernel machine
        passes on a ``cache_size`` that is a number.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers import QuadraticProgramme
    >>> gram = Gram.of(np.array([[-1.0], [1.0]]), Linear())
    >>> problem = duals.c_svc(np.arange(2), np.array([-1.0, 1.0]), C=np.full(2, 10.0))
    >>> QuadraticProgramme().solve(problem.over(gram)).beta.round(9)
    array([-0.5,  0.5])
    """

    memory: int | None = None

    def accepts(self, problem: DualProblem) -> str | None:
        """Take what memory has room for."""
        size = len(problem)
        instead = "solver='auto' or 'smo', which need some rows of it at a time"
        return _refusal("dual variables", size, _DENSE * size**2, instead, self.memory)

    def begin(
        self, problem: DualProblem, watch: Watch, pace: Pace | None = None
    ) -> QuadraticProgrammeRun:
        """Begin; interior points begin in the middle, wherever the problem's start is."""
        _library()
        return QuadraticProgrammeRun(problem, watch)


class QuadraticProgrammeRun(DualRun):
    """Interior points of the dual; a step is one of the library's."""

    answer: Answer | None

    def __init__(self, problem: DualProblem, watch: Watch) -> None:
        super().__init__(problem, watch)
        self.seen, self.answer = Measure(np.inf), None  # of the library's last step
        self.moving = np.flatnonzero(problem.lower < problem.upper)
        low, high = problem.lower[self.moving], problem.upper[self.moving]
        self.walled = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))

    def measure(self) -> Measure:
        """Largest of the library's residuals; both objectives, at the iterate where that is known.

        Without a trace the library shows no iterate: then they are its own.
        """
        if self.answer is None or self.watch.monitor.trace is None:
            return self.seen
        return replace(super().measure(), violation=self.seen.violation)

    def programme(self) -> Programme:
        """Pose the problem of the variables that can move at all."""
        problem, moving = self.problem, self.moving
        part = problem.restricted(moving)
        still = np.where(problem.lower < problem.upper, 0.0, problem.lower)
        q = part.linear + part.orientation * problem.decision(still)[part.gram_row]
        K = problem.gram.block(part.rows, part.rows)[np.ix_(part.own_row, part.own_row)]
        K *= np.outer(part.orientation, part.orientation)
        eye = sp.eye_array(len(moving), format="csr")
        below, above = self.walled
        rows, b = [-eye[below], eye[above]], [-part.lower[below], part.upper[above]]
        groups = np.unique(part.group[part.group >= 0])
        if len(groups):
            rows.insert(0, sp.csr_array((part.group == groups[:, None]).astype(np.float64)))
            b.insert(0, (sums(problem, problem.start) - sums(problem, still))[groups])
        P, ends = sp.csc_array(np.triu(K)), np.concatenate(b)
        return Programme(P, q, sp.vstack(rows), ends, len(groups), *_units(K, q, ends))

    def steps(self) -> Generator[None, None, None]:
        """The library's loop."""
        if len(self.moving):
            answer = yield from _handed(self, self.programme(), -1.0)
            # what a second round does not settle, a third one will not
            first = answer.status is Status.CONVERGED and not self.watch.spent
            self.status = Status.CONVERGED if first else Status.STALLED

    def take(self, answer: Answer) -> None:
        """Move to the feasible point next to an iterate: variables at bounds, sums restored."""
        self.answer = answer
        self.beta = _with_right_sums(self.problem, self._at_walls(answer))
        if self.watch.monitor.trace is not None:
            self.decision = self.problem.decision(self.beta, self.watch.workers)

    def solution(self, status: Status) -> Solution:
        """Return the last iterate as a feasible point."""
        return Solution(self.beta, self.n_iter, status)

    def _at_walls(self, answer: Answer) -> np.ndarray:
        """Put at its wall what a step along its coordinate alone would take there."""
        problem, (below, above) = self.problem, self.walled
        beta, curvature = answer.x.copy(), problem.gram.diagonal[problem.gram_row[self.moving]]
        curvature = np.maximum(curvature, max(curvature.mean(), _TINY))  # rows of zeros have none
        of_walls = answer.z[len(answer.z) - len(below) - len(above) :]
        pull = np.zeros(len(beta))  # a narrow box is near both its walls
        pull[below] -= of_walls[: len(below)]
        pull[above] += of_walls[len(below) :]
        wall = np.where(pull > 0, problem.upper[self.moving], problem.lower[self.moving])
        near = np.abs(beta - wall) * curvature < np.abs(pull)
        beta[near] = wall[near]
        whole = problem.lower.copy()
        whole[self.moving] = beta
        return whole


def _units(K: np.ndarray, q: np.ndarray, ends: np.ndarray) -> tuple[float, float]:
    """Sizes of the variables and of the objective: a wall's, or between it and a parabola's foot.

    Where walls are far beyond the foot ``|q| / K_ii``, variables of both sizes are to be expected.
    """
    curvature, slope = max(float(K.diagonal().max()), _TINY), float(np.abs(q).max())
    wall = float(np.abs(ends).max(initial=0.0)) or 1.0
    unit = min(wall, (wall * slope) ** 0.5 / curvature**0.5) if slope else wall
    return unit, unit * max(unit * curvature, slope)


def _with_right_sums(problem: DualProblem, beta: np.ndarray) -> np.ndarray:
    """Return the nearest point that meets the constraints, what is at a wall staying there."""
    free, totals = problem.is_free(beta), sums(problem, problem.start)
    for j, total in enumerate(totals):
        of = free & (problem.group == j)
        if of.any():
            rest = float(total - beta[~free & (problem.group == j)].sum())
            beta[of] = nearest(beta[of], problem.lower[of], problem.upper[of], rest)
    off = np.abs(sums(problem, beta) - totals).max(initial=0.0)
    return projected(problem, beta) if off > _DRIFT * (1.0 + np.abs(beta).sum()) else beta


# -- the primal ------------------------------------------------------------------------------------


class PrimalProgrammeRun(RiskRun[RegularisedRisk]):
    """Interior points of the primal; a step is one of the library's."""

    seen = Measure(np.inf)

    def measure(self) -> Measure:
        """The library's own objectives, and the largest of its residuals."""
        return self.seen

    def steps(self) -> Generator[None, None, None]:
        """The library's loop."""
        answer = yield from _handed(self, self.programme(), 1.0)
        if answer.status is Status.INFEASIBLE and _is_hard(self.risk):
            raise self._inseparable(answer)
        self.status = None if self.certificate.converged else Status.STALLED

    def programme(self) -> Programme:
        """Pose the weights and the slacks of each side of the losses.

        Rows of no cost are left out; those of infinite cost have no slack.
        """
        risk, shape = self.risk, self.risk.loss.shape
        assert shape is not None  # accepts
        self.rows = np.flatnonzero(risk.cost > 0)
        cost, width = risk.cost[self.rows], risk.design.width
        rows = sp.csr_array(risk.design.X)[self.rows]
        self.scale = np.ones(width)  # weights are posed as those of features up to one
        self.scale[: risk.design.features] = 1.0 / (np.abs(rows).max() or 1.0)
        if risk.design.constant:
            column = np.full((len(self.rows), 1), risk.design.constant)
            rows = sp.hstack([rows, sp.csr_array(column)], format="csr")
        rows = rows @ sp.diags_array(self.scale)
        y, flat = risk.y[self.rows], shape.linear
        if risk.of_margins:
            rows, centre = rows.multiply(y[:, None]).tocsr(), np.full(len(y), flat)
        else:
            centre = y + flat
        self.sides = [(sign, end) for sign, end in ((1.0, shape.high), (-1.0, shape.low)) if end]
        slack, soft = sp.eye_array(len(y), format="csr"), bool(np.isfinite(cost).all())
        held = risk.penalty.l2 * risk.penalised * self.scale**2
        blocks, b, P, q = [], [], [held], [np.zeros(width)]
        for k, (sign, end) in enumerate(self.sides):
            parts: list[Any] = [sign * rows, *[None] * (2 * len(self.sides))]
            if soft and np.isfinite(end):  # a slack with a price for each unit
                parts[1 + 2 * k] = -slack
                P.append(np.zeros(len(y)))
                q.append(abs(end) * cost)
            if soft and shape.quadratic:  # and one with a price for its square
                parts[2 + 2 * k] = -slack
                P.append(cost / shape.quadratic)
                q.append(np.zeros(len(y)))
            blocks.append(parts)
            b.append(sign * centre + shape.threshold)
        used = [j for j in range(1 + 2 * len(self.sides)) if any(r[j] is not None for r in blocks)]
        A = sp.block_array([[parts[j] for j in used] for parts in blocks], format="csr")
        slacks = A.shape[1] - width
        price = max(float(x.max()) for x in (*P[1:], *q)) or float(held.max())  # of a slack
        floor = sp.hstack([sp.csr_array((slacks, width)), -sp.eye_array(slacks)])
        ends, value = np.concatenate([*b, np.zeros(slacks)]), (float(held.max()) * price) ** 0.5
        diagonal = sp.diags_array(np.concatenate(P))
        return Programme(diagonal, np.concatenate(q), sp.vstack([A, floor]), ends, value=value)

    def take(self, answer: Answer) -> None:
        """Stand at an iterate, with the slopes that its multipliers are."""
        risk, n = self.risk, len(self.rows)
        multiplier, theta = np.zeros(risk.n), self.scale * answer.x[: risk.design.width]
        for k, (sign, _) in enumerate(self.sides):
            multiplier[self.rows] += sign * answer.z[k * n : (k + 1) * n]
        if _is_hard(risk):
            slackest = float(risk.arguments(risk.values(theta))[self.rows].min())
            self.stand(theta / slackest if slackest > 0 else theta, multiplier)
        else:
            cost = np.where(risk.cost > 0, risk.cost, np.inf)
            self.stand(theta, risk.allowed(multiplier / cost))

    def _judged(self) -> RiskCertificate:
        if not _is_hard(self.risk):
            return super()._judged()
        # both objectives of SVM1: weights that violate nothing, and the best multiple of the dual
        risk, tol = self.risk, self.watch.tol
        alpha = np.zeros(risk.n) if self.s is None else np.maximum(-self.s, 0.0)
        if risk.free_intercept:
            plus, minus = alpha[risk.y > 0].sum(), alpha[risk.y < 0].sum()
            alpha = alpha * (
                min(plus, minus) / np.maximum(np.where(risk.y > 0, plus, minus), _TINY)
            )
        combined = risk.penalised * risk.design.combination(risk.y * alpha)
        dual = 0.5 * float(alpha.sum()) ** 2 / max(float(combined @ combined), _TINY)
        margins = risk.arguments(risk.values(self.theta))[risk.cost > 0]
        primal = risk.norm(self.theta) if margins.min() >= 1.0 - 1e-12 else np.inf
        return RiskCertificate.of(primal, dual, _TINY, Status.CONVERGED, tol)

    def _inseparable(self, answer: Answer) -> InseparableError:
        """Say that no hyperplane separates; the multipliers are points where the hulls meet."""
        n, y = len(self.rows), self.risk.y[self.rows]
        alpha = np.maximum(answer.z[:n], 0.0)
        sides = []
        for label in (1.0, -1.0):
            used = np.flatnonzero((y == label) & (alpha > 1e-9 * alpha.max()))
            sides.append((self.rows[used], alpha[used] / alpha[used].sum()))
        points = [self.risk.design.X[rows].T @ weights for rows, weights in sides]
        return InseparableError(
            "The hard margin (C=inf) cannot be had: no hyperplane separates the two classes. A "
            f"convex combination of {len(sides[0][0])} row(s) of the one and one of "
            f"{len(sides[1][0])} row(s) of the other coincide; they are in this error's `positive` "
            "and `negative`. Use a finite C.",
            positive=sides[0],
            negative=sides[1],
            distance=float(np.linalg.norm(points[0] - points[1])),
        )


def _is_hard(risk: RegularisedRisk) -> bool:
    """Whether no slack is allowed at any cost."""
    return bool(np.isinf(risk.cost).any())


@dataclass(frozen=True)
class PrimalProgramme(RiskMethod):
    """The primal of a linear machine as one quadratic programme, solved by interior points.

    Its variables are M weights, the intercept and slacks of N rows. A step eliminates the slacks
    and factorises what is left, in features or in rows: some N M min(N, M) operations and 160 N M
    bytes. It takes ten to twenty steps, however hard the problem. Costs that are all infinite (or
    zero) are SVM1, the hard margin. More than 20,000 of both, or than memory has room for, it
    refuses.

    Needs ``pip install 'maxmargin[qp]'``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.linear import Design
    >>> from maxmargin.losses import Hinge
    >>> from maxmargin.risk import RegularisedRisk
    >>> from maxmargin.solvers import PrimalProgramme
    >>> X, y = np.array([[0.0], [1.0], [1.5]]), np.array([-1.0, 1.0, 1.0])
    >>> hard = RegularisedRisk(Design(X), y, np.full(3, np.inf), Hinge())  # SVM1
    >>> solution = PrimalProgramme().solve(hard)
    >>> solution.theta.round(6), solution.certificate.converged
    (array([ 2., -1.]), True)
    """

    run = PrimalProgrammeRun

    def accepts(self, problem: Any) -> str | None:
        """Take the l2 penalty and losses that are piecewise linear or quadratic."""
        if not isinstance(problem, RegularisedRisk):
            return "solver='qp' is for two classes or numbers: use solver='auto' for several."
        if problem.penalty.l1 or problem.penalty.none:
            return "solver='qp' takes the l2 penalty only: use solver='auto'."
        shape, loss = problem.loss.shape, problem.loss
        if shape is None or shape.entropy:
            return f"solver='qp' takes lines and parabolas, not {loss!r}: use solver='auto'."
        hard = _is_hard(problem)
        if hard and not (problem.of_margins and np.isin(problem.cost, (0.0, np.inf)).all()):
            return "The hard margin (C=inf) is of all rows, and for classes: use a finite C."
        design, instead = problem.design, "solver='auto', or 'dual_descent'"
        smaller = min(design.n, design.width)
        needed = _SPARSE * (design.entries + design.n + smaller**2)
        return _refusal("features, or rows if they are fewer", smaller, needed, instead)

    def begin(self, problem: Any, watch: Watch, *where: Any, **how: Any) -> Run:
        """Begin; interior points begin in the middle, wherever an earlier answer is."""
        _library()
        return super().begin(problem, watch, *where, **how)
