"""The dual problems of the kernel machines, all of one form.

Every machine here is the quadratic programme

    minimise     1/2 a' Q a + p' a          Q_ts = s_t s_s K(g_t, g_s)
    subject to   lower <= a <= upper
                 sum of c_t a_t over group j  =  its value at the start,  for every group j

over variables ``a_t`` that sit on row ``g_t`` of one Gram matrix with a sign ``s_t``. Two variables
may share a row (support vector regression), problems may share the Gram matrix (pairs of
classes, folds), and there are no, one or two groups:

==========  =====================  =======  =======  =====================================
machine     variables              p        upper    constraints (groups)
==========  =====================  =======  =======  =====================================
C-SVC       one per row, s = y     -1       C w      sum y a = 0
nu-SVC      one per row, s = y     0        w        sum a = nu N / 2 in each class
hard SVC    one per row, s = y     0        inf      sum a = 1 in each class
SVR         two per row, s = +-1   e -+ t   C w      sum s a = 0
nu-SVR      two per row, s = +-1   -+ t     C w      sum a = C nu N / 2 for each sign
one-class   one per row, s = 1     0        w        sum a = nu N
==========  =====================  =======  =======  =====================================

``w`` are sample weights, N their sum, e the width of the tube, t the target. Without a bias the
constraint that comes from it is dropped. The machine is read off a solution through the *level*
``l_j`` of each group, the value of ``-c_t (Q a + p)_t`` on its free variables: for C-SVC it is b.

The hard margin is posed as the nearest points of the two convex hulls: always bounded, and when
the hulls touch, its solution is the witness that no hyperplane separates. Scaled by ``1 / rho`` it
is the solution of the maximum margin problem, just as for nu-SVC.

Reference: Chang and Lin, LIBSVM, ACM TIST 2011; Keerthi et al., IEEE TNN 11(1), 2000 (hulls).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.cpu.certificate import Readings, reading
from maxmargin.backends.cpu.steps import Variables
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.gram import Gram

_AT_BOUND = 1e-12  # from a bound, over the width of the box, that is rounding


@dataclass(frozen=True)
class DualProblem:
    """One quadratic programme of the form above.

    Attributes
    ----------
    gram_row : int array (m,)
        Row of the Gram matrix that each variable sits on.
    sign, coefficient : float arrays (m,)
        ``s`` and ``c``, each +1 or -1.
    linear, lower, upper, start : float arrays (m,)
        ``p``, the box, and a feasible point that fixes the constraints' right-hand sides.
    group : int array (m,)
        Equality constraint of each variable, counted from 0; -1 throughout when there is none.
    bias_weights, margin_weights : float arrays, one entry per group
        ``b`` and ``rho`` as linear functions of the levels. Machines whose margin is fixed at
        one have an empty ``margin_weights``.
    tube_weights : float array, one entry per group
        Width of the tube as a function of the levels, for nu-SVR; else empty.
    scaled : bool
        Whether the machine is divided by rho, so that its margin is one (nu-SVC, hard margin).
    hard : bool
        Whether this is the hard margin, posed as nearest points of the hulls.
    known_decision : float array, one entry per row of the Gram matrix, optional
        ``K beta`` at the start, where it is known.
    """

    gram_row: np.ndarray
    sign: np.ndarray
    coefficient: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray
    group: np.ndarray
    bias_weights: np.ndarray
    margin_weights: np.ndarray
    tube_weights: np.ndarray
    scaled: bool = False
    hard: bool = False
    known_decision: np.ndarray | None = None

    @property
    def n_groups(self) -> int:
        """Number of equality constraints."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def variables(self) -> Variables:
        """The arrays that describe the variables, for compiled code."""
        return Variables(
            self.gram_row,
            self.sign,
            self.coefficient,
            self.linear,
            self.lower,
            self.upper,
            self.group,
        )

    @property
    def readings(self) -> Readings:
        """How a machine is read off the levels, for compiled code."""
        return Readings(self.bias_weights, self.margin_weights, self.tube_weights)

    @property
    def rows(self) -> np.ndarray:
        """Rows of the Gram matrix that the variables sit on, in order."""
        ascending = bool((np.diff(self.gram_row) > 0).all())
        return self.gram_row if ascending else np.unique(self.gram_row)

    def on_rows(self, alpha: np.ndarray, n: int) -> np.ndarray:
        """Return the ``beta`` of ``w = sum_i beta_i phi_i``: the sum of ``s_t a_t`` on each row."""
        if self.rows is not self.gram_row:
            return np.bincount(self.gram_row, weights=self.sign * alpha, minlength=n)
        beta = np.zeros(n)
        beta[self.gram_row] = self.sign * alpha + 0.0  # no negative zeros
        return beta

    def decision(self, gram: Gram, beta: np.ndarray) -> np.ndarray:
        """``K beta`` on this problem's rows of the Gram matrix, nan on the others."""
        rows = self.rows
        decision = np.full(gram.n, np.nan)
        decision[rows] = gram.matvec(beta, rows)
        return decision

    def decision_at_start(self, gram: Gram, workers: Workers = ALONE) -> np.ndarray:
        """``K beta`` at the start."""
        if self.known_decision is not None:
            return self.known_decision.copy()
        return gram.matvec(self.on_rows(self.start, gram.n), workers=workers)

    def gradient(self, decision: np.ndarray) -> np.ndarray:
        """``Q a + p``, from ``decision = K beta``."""
        return self.sign * decision[self.gram_row] + self.linear

    def gap(self, alpha: np.ndarray, score: np.ndarray) -> float:
        """Duality gap, given ``v`` less the level of its group."""
        residual = -self.coefficient * score
        least = np.minimum(residual * self.lower, residual * self.upper)
        return float(np.maximum(residual * alpha - least, 0.0).sum())

    def started_from(self, alpha: np.ndarray, decision: np.ndarray | None = None) -> DualProblem:
        """Return the same problem with another feasible start, and its ``K beta`` if known."""
        return replace(self, start=alpha, known_decision=decision)

    def started_near(self, alpha: np.ndarray) -> DualProblem:
        """Return the same problem started as near to ``alpha`` as the constraints allow.

        What the box or a constraint forbids is taken back over the variables of a group that are
        between their bounds, and over all of them only where these have not the room. What is at
        a bound but for rounding is put there: else solvers would take it for free.
        """
        near = np.clip(alpha, self.lower, self.upper)
        width = np.where(np.isfinite(self.upper), self.upper - self.lower, np.abs(near).max())
        near = np.where(near - self.lower <= _AT_BOUND * width, self.lower, near)
        near = np.where(self.upper - near <= _AT_BOUND * width, self.upper, near)
        for j in range(self.n_groups):
            member = np.flatnonzero(self.group == j)
            c = self.coefficient[member]
            drift = float(c @ (near - self.start)[member])
            up = np.minimum(self.upper[member], np.abs(self.start[member]).sum()) - near[member]
            down = near[member] - self.lower[member]
            room = np.maximum(np.where(drift * c > 0, down, up), 0.0)
            rounding = 1e-12 * float(np.abs(near[member]).sum() + np.abs(self.start[member]).sum())
            if abs(drift) > rounding:  # less is left alone: bounds stay exact
                free = (near > self.lower)[member] & (near < self.upper)[member]
                if abs(drift) <= room[free].sum():
                    room = np.where(free, room, 0.0)
                if abs(drift) > room.sum():
                    return self  # no room: begin where we would have
                near[member] -= np.sign(drift) * c * (abs(drift) / room.sum()) * room
        return self.started_from(np.clip(near, self.lower, self.upper))

    def restricted(self, index: np.ndarray) -> DualProblem:
        """Return the problem of some of the variables, the others staying where they are.

        Its ``linear`` does not know of the others: gradients are to be carried over.
        """
        arrays: dict[str, Any] = {name: getattr(self, name)[index] for name in _PER_VARIABLE}
        return replace(self, **arrays, known_decision=None)

    def renumbered(self, rows: np.ndarray) -> DualProblem:
        """Return the same problem over ``gram.take(rows)``; ``rows`` must be sorted."""
        if rows is self.gram_row:
            return replace(self, gram_row=np.arange(len(rows)))
        return replace(self, gram_row=np.searchsorted(rows, self.gram_row))

    def normalised(self, rho: float) -> DualProblem:
        """For the hard margin: the maximum margin problem whose solution is ``alpha / rho``."""
        return replace(
            self,
            linear=np.full(len(self.sign), -1.0),
            coefficient=self.sign if self.n_groups == 2 else np.ones(len(self.sign)),
            group=np.full(len(self.sign), 0 if self.n_groups == 2 else -1),
            start=self.start / rho,
            bias_weights=np.ones(1) if self.n_groups == 2 else np.empty(0),
            margin_weights=np.empty(0),
            scaled=False,
        )


class Levels(NamedTuple):
    """What the levels of the groups say about the machine."""

    bias: float
    margin: float
    tube: float


def read_levels(problem: DualProblem, levels: np.ndarray) -> Levels:
    """Bias ``b``, margin ``rho`` (1 where it is fixed) and tube width of a solution."""
    return Levels(
        bias=reading(problem.bias_weights, levels, 0.0),
        margin=reading(problem.margin_weights, levels, 1.0),
        tube=reading(problem.tube_weights, levels, 0.0),
    )


@dataclass(frozen=True)
class DualBatch:
    """Several problems over one Gram matrix as ragged arrays: problem k is ``offset[k:k+2]``.

    This is what crosses to a solver: pairs of classes and folds are solved together.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import DualBatch, one_class
    >>> batch = DualBatch.of([one_class(np.arange(n), np.ones(n), nu=0.5) for n in (2, 4)])
    >>> len(batch), batch.offset, batch[1].start
    (2, array([0, 2, 6]), array([1., 1., 0., 0.]))
    """

    offset: np.ndarray
    arrays: dict[str, np.ndarray]
    readings: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, problems: Sequence[DualProblem]) -> DualBatch:
        """Stack problems."""
        sizes = [len(problem.sign) for problem in problems]
        return cls(
            offset=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            arrays={
                name: np.concatenate([getattr(problem, name) for problem in problems])
                for name in _PER_VARIABLE
            },
            readings=tuple({name: getattr(p, name) for name in _PER_PROBLEM} for p in problems),
        )

    def some(self, chosen: Sequence[int]) -> DualBatch:
        """Return a batch of some of the problems; of all in their order, this one."""
        if list(chosen) == list(range(len(self))):
            return self
        return DualBatch.of([self[k] for k in chosen])

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __getitem__(self, k: int) -> DualProblem:
        if not 0 <= k < len(self):
            raise IndexError(k)
        span = slice(self.offset[k], self.offset[k + 1])
        views: dict[str, Any] = {name: array[span] for name, array in self.arrays.items()}
        return DualProblem(**views, **self.readings[k])

    def __iter__(self) -> Iterator[DualProblem]:
        return (self[k] for k in range(len(self)))


_PER_VARIABLE = ("gram_row", "sign", "coefficient", "linear", "lower", "upper", "start", "group")
_PER_PROBLEM = (
    "bias_weights",
    "margin_weights",
    "tube_weights",
    "scaled",
    "hard",
    "known_decision",
)
_NONE = np.empty(0)


def c_svc(rows: np.ndarray, y: np.ndarray, C: np.ndarray, *, bias: bool = True) -> DualProblem:
    """Soft margin: ``min 1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i (w . phi_i + b))``.

    Parameters
    ----------
    rows : int array (m,)
        Rows of the Gram matrix.
    y : float array (m,)
        Labels, -1 or +1.
    C : float array (m,)
        Cost of each row's slack; with ``lam`` of the lambda form ``C_i = w_i / (2 N lam)``.
    bias : bool
        Without it b = 0 and only the box remains.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import c_svc
    >>> problem = c_svc(np.arange(3), np.array([1.0, -1.0, 1.0]), C=np.ones(3))
    >>> problem.n_groups, problem.linear, problem.upper
    (1, array([-1., -1., -1.]), array([1., 1., 1.]))
    """
    m = len(rows)
    return DualProblem(
        gram_row=rows,
        sign=y,
        coefficient=y if bias else np.ones(m),
        linear=np.full(m, -1.0),
        lower=np.zeros(m),
        upper=C,
        start=np.zeros(m),
        group=np.full(m, 0 if bias else -1),
        bias_weights=np.ones(1) if bias else _NONE,
        margin_weights=_NONE,
        tube_weights=_NONE,
    )


def nu_svc(
    rows: np.ndarray, y: np.ndarray, weight: np.ndarray, nu: float, *, bias: bool = True
) -> DualProblem:
    """nu-SVC: ``min 1/2 ||w||^2 - nu N rho + sum_i w_i max(0, rho - y_i (w . phi_i + b))``.

    nu bounds the share of margin errors from above and that of support vectors from below. With a
    bias each class must be able to hold half of the mass, so ``nu <= 2 min(N+, N-) / N``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import nu_svc
    >>> problem = nu_svc(np.arange(4), np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4), nu=0.5)
    >>> problem.group, problem.start
    (array([0, 0, 1, 1]), array([1., 0., 1., 0.]))
    """
    total = weight.sum()
    positive, negative = weight[y > 0].sum(), weight[y < 0].sum()
    if bias and nu * total / 2 > min(positive, negative) * (1 + 1e-12):
        raise ValueError(
            f"specified nu is infeasible: nu={nu:g}, but the classes (of weight {positive:g} and "
            f"{negative:g}) allow 0 < nu <= {2 * min(positive, negative) / total:.6g}"
        )
    return _unit_sums(rows, y, weight, nu * total, bias=bias)


def hard_margin(
    rows: np.ndarray, y: np.ndarray, weight: np.ndarray, *, bias: bool = True
) -> DualProblem:
    """Hard margin, ``min 1/2 ||w||^2 subject to y_i (w . phi_i + b) >= 1``, as nearest points.

    Minimises the squared distance between a convex combination of either class (without a bias:
    between a convex combination of the ``y_i phi_i`` and the origin). Rows of weight zero take no
    part.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import hard_margin
    >>> hard_margin(np.arange(3), np.array([1.0, -1.0, -1.0]), np.ones(3)).start
    array([1., 1., 0.])
    """
    upper = np.where(weight > 0, np.inf, 0.0)
    problem = _unit_sums(rows, y, upper, 2.0 if bias else 1.0, bias=bias)
    return replace(problem, hard=True)


def _unit_sums(
    rows: np.ndarray, y: np.ndarray, upper: np.ndarray, total: float, *, bias: bool
) -> DualProblem:
    """Share ``total`` among the variables: half to each class, or without a bias among all."""
    m = len(rows)
    group = np.where(y > 0, 0, 1) if bias else np.zeros(m, dtype=np.int64)
    start = np.zeros(m)
    for j in range(2 if bias else 1):
        members = np.flatnonzero(group == j)
        start[members] = _filled(upper[members], total / 2 if bias else total)
    return DualProblem(
        gram_row=rows,
        sign=y,
        coefficient=np.ones(m),
        linear=np.zeros(m),
        lower=np.zeros(m),
        upper=upper,
        start=start,
        group=group,
        bias_weights=np.array([0.5, -0.5]) if bias else _NONE,
        margin_weights=np.array([-0.5, -0.5]) if bias else np.array([-1.0]),
        tube_weights=_NONE,
        scaled=True,
    )


def epsilon_svr(
    rows: np.ndarray, target: np.ndarray, C: np.ndarray, epsilon: float, *, bias: bool = True
) -> DualProblem:
    """SVR: ``min 1/2 ||w||^2 + sum_i C_i max(0, |w . phi_i + b - t_i| - epsilon)``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import epsilon_svr
    >>> problem = epsilon_svr(np.arange(2), np.array([1.0, 2.0]), C=np.ones(2), epsilon=0.5)
    >>> problem.gram_row, problem.linear
    (array([0, 1, 0, 1]), array([-0.5, -1.5,  1.5,  2.5]))
    """
    m = len(rows)
    sign = np.repeat([1.0, -1.0], m)
    return DualProblem(
        gram_row=np.tile(rows, 2),
        sign=sign,
        coefficient=sign if bias else np.ones(2 * m),
        linear=epsilon - sign * np.tile(target, 2),
        lower=np.zeros(2 * m),
        upper=np.tile(C, 2),
        start=np.zeros(2 * m),
        group=np.full(2 * m, 0 if bias else -1),
        bias_weights=np.ones(1) if bias else _NONE,
        margin_weights=_NONE,
        tube_weights=_NONE,
    )


def nu_svr(
    rows: np.ndarray, target: np.ndarray, C: np.ndarray, nu: float, *, bias: bool = True
) -> DualProblem:
    """nu-SVR: ``min 1/2 ||w||^2 + nu sum(C) e + sum_i C_i max(0, |w . phi_i + b - t_i| - e)``.

    The width e of the tube is found, not given: nu is the share of points that may leave it.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import nu_svr
    >>> nu_svr(np.arange(2), np.array([1.0, 2.0]), C=np.ones(2), nu=0.5).start
    array([0.5, 0. , 0.5, 0. ])
    """
    m = len(rows)
    sign = np.repeat([1.0, -1.0], m)
    half = _filled(C, nu * C.sum() / 2)
    return DualProblem(
        gram_row=np.tile(rows, 2),
        sign=sign,
        coefficient=np.ones(2 * m),
        linear=-sign * np.tile(target, 2),
        lower=np.zeros(2 * m),
        upper=np.tile(C, 2),
        start=np.tile(half, 2),
        group=np.repeat([0, 1 if bias else 0], m),
        bias_weights=np.array([0.5, -0.5]) if bias else _NONE,
        margin_weights=_NONE,
        tube_weights=np.array([0.5, 0.5]) if bias else np.ones(1),
    )


def one_class(rows: np.ndarray, weight: np.ndarray, nu: float) -> DualProblem:
    """One-class SVM: ``min 1/2 ||w||^2 - nu N rho + sum_i w_i max(0, rho - w . phi_i)``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import one_class
    >>> one_class(np.arange(4), np.ones(4), nu=0.5).start
    array([1., 1., 0., 0.])
    """
    m = len(rows)
    return DualProblem(
        gram_row=rows,
        sign=np.ones(m),
        coefficient=np.ones(m),
        linear=np.zeros(m),
        lower=np.zeros(m),
        upper=weight,
        start=_filled(weight, nu * weight.sum()),
        group=np.zeros(m, dtype=np.int64),
        bias_weights=np.ones(1),
        margin_weights=np.array([-1.0]),
        tube_weights=_NONE,
    )


def _filled(upper: np.ndarray, total: float) -> np.ndarray:
    """Distribute ``total`` over boxes ``[0, upper]``, the first ones first."""
    upper = np.minimum(upper, total)
    before = np.concatenate([[0.0], np.cumsum(upper)[:-1]])
    return np.clip(total - before, 0.0, upper)
