"""A quadratic programme in a box by an interior-point method: dense, in float64, on CPU or GPU.

    minimise     1/2 d' H d - v' d          for x = b + d
    subject to   lower <= x <= upper,  the sum of d in each group zero

Steps of two crawl where H is ill-conditioned and thousands of variables are free at once. Here
every step moves all variables. With multipliers z and w of the two walls, s = x - lower,
t = upper - x and a level l for each group, Newton's method is applied to

    v - H d = l + w - z,       s z = t w = mu,

while mu goes to zero. A step is one Cholesky factorisation of ``H + diag(z / s + w / t)``, which
is better conditioned than H; 10 to 30 of them suffice, however ill-conditioned H is. Where H is
of low rank (:class:`LowRank`), a step is one QR decomposition of its few columns.

Arrays are NumPy's or torch's: what H is, all others are, and so is the answer. The two libraries
spell everything here alike but the factorisation: :func:`_factorised`.

References: Mehrotra, SIAM J. Optimization 2, 1992 (predictor and corrector); Gondzio, Computational
Optimization and Applications 6, 1996 (a further corrector for the same factorisation); Ferris and
Munson, SIAM J. Optimization 13, 2003 (for support vector machines).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs

from maxmargin.backends.low_rank import LowRank
from maxmargin.backends.threads import ALONE, Workers

Array = Any  # numpy.ndarray or torch.Tensor
Solve = Callable[[Array], Array]

MOST_STEPS = 60
_VAIN = 20  # steps with neither a better point nor half the mu, after which none will come,
_WON = 1e-2  # or half as many without a better point once the violation has come to this part
MATRICES = 3  # of the size of H that are held at once: H, H + diagonal, its factor
_INSIDE = 1e-3  # of the distance between the walls, that the first point keeps from either
_LEAST = 1e-4  # of this way is gone in any case
_CLOSEST = 1e-16  # of that distance, that every point keeps
_RIDGE = 1e-14, 1e-11  # of the diagonal: what rounding does to it anyway, and at most
_STIFFER = 10.0  # times the ridge where a factorisation fails
_SHORT = 0.995  # of the way to the nearest wall is taken
_LONG = 0.9  # a step this long needs no further corrector
_LOPSIDED = 10.0  # products s z this many times mu, or less than it by as much, are corrected
_AT_WALL = 0.3  # of the violation asked for: with a larger multiplier a variable is at its wall
_TILE = 512  # rows and columns of a factor that are made at a time


class Minimum(NamedTuple):
    """The best point met: its scores, the violation left, and the steps taken in all."""

    x: Array
    v: Array
    violation: float
    steps: int


class _Direction(NamedTuple):
    """A direction for the point, the levels and the multipliers, and how far it can be gone."""

    x: Array
    level: Array
    z: Array
    w: Array
    length: Array


class _Slacks(NamedTuple):
    """Distances from the two walls, and their multipliers."""

    s: Array
    t: Array
    z: Array
    w: Array


class Dense:
    """A positive semidefinite matrix as it is, and as much of a ridge as its factors need."""

    def __init__(self, H: Array, workers: Workers = ALONE) -> None:
        self.H, self.workers = H, workers
        self._matrix: Array = None
        self._ridge = _RIDGE[0]

    def __matmul__(self, x: Array) -> Array:
        return self.H @ x

    def diagonal(self) -> Array:
        """Diagonal of the matrix."""
        return self.H.diagonal()

    def factorised(self, diagonal: Array) -> Solve | None:
        """Return what solves with the matrix and a diagonal added; None if it is indefinite."""
        if self._matrix is None:
            self._matrix = _library(self.H).empty_like(self.H)
        while True:
            self._matrix[:] = self.H
            ridge = self._ridge * self.H.diagonal()  # of each row's own: they can differ by far
            self._matrix.reshape(-1)[:: len(diagonal) + 1] += diagonal + ridge
            solve = _factorised(self._matrix, self.workers)
            if solve is not None or _STIFFER * self._ridge > _RIDGE[1]:
                return solve
            self._ridge *= _STIFFER


class OnRows:
    """A curvature whose variables sit on rows of a matrix, one or two on each; NumPy's arrays only.

    Two on a row (support vector regression has one for each side of the tube) move the same row,
    so systems are of the size of the matrix and not twice that. With t the diagonals of the two,
    and u their sum, which solves a system of the rows with ``t1 t2 / (t1 + t2)`` added,

        x1 = (b1 - b2 + t2 u) / (t1 + t2),       x2 = u - x1.

    Parameters
    ----------
    matrix : Dense or LowRank
    row : int array (m,)
        Row of each variable.
    orientation : float array (m,)
        Sign with which each moves it.
    """

    def __init__(self, matrix: Dense | LowRank, row: np.ndarray, orientation: np.ndarray) -> None:
        self.matrix, self.row, self.orientation = matrix, row, orientation
        order = np.argsort(row, kind="stable")
        second = np.flatnonzero(np.diff(row[order]) == 0) + 1
        self.pairs = order[second - 1], order[second]

    def _sums(self, x: np.ndarray) -> np.ndarray:
        """Sums over the variables of each row."""
        return np.bincount(self.row, x, len(self.matrix.diagonal()))

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        return self.orientation * (self.matrix @ self._sums(self.orientation * x))[self.row]

    def diagonal(self) -> np.ndarray:
        """Diagonal of the matrix of all variables."""
        return self.matrix.diagonal()[self.row]

    def factorised(self, diagonal: np.ndarray) -> Solve | None:
        """Return a function that solves systems with the matrix plus a diagonal."""
        first, second = self.pairs
        together = diagonal[first] + diagonal[second]
        of_row = np.empty(len(self.matrix.diagonal()))
        of_row[self.row] = diagonal
        of_row[self.row[first]] = diagonal[first] * (diagonal[second] / together)
        solve = self.matrix.factorised(of_row)
        if solve is None:
            return None
        share = (diagonal[second] / together)[:, None]

        def solve_all(right: np.ndarray) -> np.ndarray:
            b = self.orientation[:, None] * right
            on_rows = np.empty((len(of_row), b.shape[1]))
            on_rows[self.row] = b
            on_rows[self.row[first]] = share * b[first] + (1.0 - share) * b[second]
            u = solve(on_rows)
            x = u[self.row]
            x[first] = (b[first] - b[second]) / together[:, None] + share * x[first]
            x[second] -= x[first]
            return self.orientation[:, None] * x

        return solve_all


class Blocks:
    """A matrix for each of several equal blocks of variables; NumPy's arrays only.

    Parameters
    ----------
    H : float64 array (n, n)
        Positive semidefinite.
    count : int
        Blocks.
    """

    def __init__(self, H: np.ndarray, count: int, workers: Workers = ALONE) -> None:
        self.H, self.count, self.workers = H, count, workers
        self.parts = [Dense(H, workers) for _ in range(count)]

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        return (x.reshape(self.count, -1) @ self.H).ravel()

    def diagonal(self) -> np.ndarray:
        """Diagonal of the matrix of all variables."""
        return np.tile(self.H.diagonal(), self.count)

    def factorised(self, diagonal: np.ndarray) -> Solve | None:
        """Return what solves with the matrix of all variables and a diagonal added."""
        each = diagonal.reshape(self.count, -1)
        solves = [part.factorised(own) for part, own in zip(self.parts, each, strict=True)]
        if any(solve is None for solve in solves):
            return None

        def solve_all(right: np.ndarray) -> np.ndarray:
            parts = right.reshape(self.count, -1, right.shape[1])
            return np.concatenate(
                [solve(part) for solve, part in zip(solves, parts, strict=True) if solve]
            )

        return solve_all


def minimise(
    H: Array | LowRank | OnRows | Blocks,
    v: Array,
    b: Array,
    lower: Array,
    upper: Array,
    member: Array,
    target: float,
    workers: Workers = ALONE,
) -> Minimum | None:
    """Minimise until no KKT condition is violated by more than ``target``, or steps run out.

    Parameters
    ----------
    H : float64 array (m, m), LowRank, OnRows or Blocks
        Positive semidefinite. Where a factorisation shows that it is not, the answer is None.
    v : float64 array (m,)
        Negative gradient at b.
    b, lower, upper : float64 arrays (m,)
        All finite, lower < upper.
    member : float64 array (m, groups)
        One where a variable belongs to a group, otherwise zero.
    target : float
        Largest violation, of what a level leaves of v.
    workers : Workers
        Threads for the factorisations on the CPU, asked between tiles whether to stop.
    """
    xp = _library(v)
    curvature = H if isinstance(H, LowRank | OnRows | Blocks) else Dense(H, workers)
    width = upper - lower
    count = xp.clip(member.sum(0), 1, None)
    # away from the walls, but not so far that the scores change by more than they differ now
    away = xp.clip(b, lower + _INSIDE * width, upper - _INSIDE * width) - b
    image = H @ away
    score = v - member @ ((member.T @ v) / count)
    share = (xp.abs(score).mean() + target) / (xp.abs(image).mean() + target)
    share = xp.clip(share, _LEAST, 1.0)
    x, v = b + share * away, v - share * image
    sums = member.T @ b
    level = (member.T @ v) / count
    score = v - member @ level
    common = xp.abs(score).mean() + target
    # between near walls it takes larger multipliers for products like those of the others
    common = common * xp.clip(xp.median(width) / width, 1.0, None)
    z, w = xp.clip(-score, 0, None) + common, xp.clip(score, 0, None) + common
    unit = xp.sqrt(H.diagonal().max() * xp.median(H.diagonal()))
    closest = _CLOSEST * width
    steps, best, least, fell, first = 0, None, np.inf, 0, np.inf
    while True:
        s, t = xp.maximum(x - lower, closest), xp.maximum(upper - x, closest)
        slacks = _Slacks(s, t, z, w)
        settled = _settled(x, lower, upper, slacks, target)
        v_settled = v - H @ (settled - x)
        lack = xp.abs(sums - member.T @ settled).sum() * unit
        violation = float(_violation(settled, v_settled, lower, upper, member) + lack)
        if best is None or violation < best.violation:
            best = Minimum(settled, v_settled, violation, steps)
        mu = float(s @ z + t @ w)
        if mu < 0.5 * least:
            least, fell = mu, steps
        first = violation if not steps else first
        won = best.violation <= _WON * first and steps - best.steps == _VAIN // 2
        ended = steps == MOST_STEPS or won or steps - max(best.steps, fell) == _VAIN
        if violation <= target or ended or not violation < np.inf:
            return best._replace(steps=steps)
        solve = curvature.factorised(z / s + w / t)
        if solve is None:
            return None
        try:
            way = _direction(solve, member, sums - member.T @ x, v - member @ level, slacks)
        except np.linalg.LinAlgError:  # constraints that are dependent but for rounding
            return None
        step = way.length * way.x
        x = xp.clip(x + step, lower + closest, upper - closest)
        v = v - H @ step
        level, z, w = (
            old + way.length * new
            for old, new in zip((level, z, w), (way.level, way.z, way.w), strict=True)
        )
        steps += 1
        workers.check()


def _library(array: Array) -> Any:
    """The module that an array is of: numpy or torch."""
    return sys.modules[type(array).__module__.partition(".")[0]]


def _settled(x: Array, lower: Array, upper: Array, slacks: _Slacks, target: float) -> Array:
    """Put every variable at the nearer wall whose multiplier says that it belongs there."""
    xp = _library(x)
    s, t, z, w = slacks
    low = (s < t) & (z > _AT_WALL * target)
    high = (s >= t) & (w > _AT_WALL * target)
    return xp.where(low, lower, xp.where(high, upper, x))


def _violation(x: Array, v: Array, lower: Array, upper: Array, member: Array) -> Array:
    """Largest violation of a KKT condition."""
    xp = _library(x)
    rises = xp.where(x < upper, v, -xp.inf)
    falls = xp.where(x > lower, v, xp.inf)
    if not member.shape[1]:
        return xp.clip(xp.maximum(rises.max(), -falls.min()), 0, None)
    own = member > 0
    top = xp.amax(xp.where(own, rises[:, None], -xp.inf), 0)
    bottom = xp.amin(xp.where(own, falls[:, None], xp.inf), 0)
    return xp.clip(top - bottom, 0, None).max()


def _direction(
    solve: Solve,
    member: Array,
    missing: Array,
    residual: Array,
    slacks: _Slacks,
) -> _Direction:
    """Predict where ``mu = 0`` leads, aim at the mu that this makes likely, correct the products.

    ``missing`` is what the sums of the groups lack, ``residual`` is v less the levels.
    """
    xp = _library(residual)
    s, t, z, w = slacks
    m = len(s)
    turn = _turn(member)
    member, missing = member @ turn, turn @ missing
    first = solve(xp.column_stack([residual, member]))
    spread = first[:, 1:]
    among = _inverse(member.T @ spread)

    def along(x: Array, low: Array | float, high: Array | float) -> _Direction:
        """Direction to the products ``s z = low`` and ``t w = high``, from a solution for x."""
        level = among @ (member.T @ x - missing)
        x = x - spread @ level
        x = x - spread @ (among @ (member.T @ x - missing))  # what rounding has left of it
        dz, dw = (low - z * x) / s - z, (high + w * x) / t - w
        fastest = xp.stack([-x / s, x / t, -dz / z, -dw / w]).max()
        return _Direction(x, turn @ level, dz, dw, _SHORT / xp.clip(fastest, _SHORT, None))

    def towards(low: Array, high: Array) -> _Direction:
        side = residual - high / t + low / s
        return along(solve(side[:, None])[:, 0], low, high)

    def products(way: _Direction, far: Array) -> tuple[Array, Array]:
        """Products ``s z`` and ``t w`` so far along a direction."""
        dx, dz, dw = far * way.x, far * way.z, far * way.w
        return (s + dx) * (z + dz), (t - dx) * (w + dw)

    mu = (s @ z + t @ w) / (2 * m)
    way = along(first[:, 0], 0.0, 0.0)
    left = sum(product.sum() for product in products(way, way.length)) / (2 * m)
    aim = mu * (left / mu) ** 3
    low, high = aim - way.x * way.z, aim + way.x * way.w
    way = towards(low, high)
    if bool(way.length > _LONG):
        return way
    far = xp.clip(1.1 * way.length + 0.1, None, 1.0)
    near_low, near_high = (_balancing(product, aim) for product in products(way, far))
    other = towards(low + near_low, high + near_high)
    return other if bool(other.length > way.length) else way


def _turn(member: Array) -> Array:
    """Return what makes two groups their sum and their difference; symmetric.

    A kernel of nearly constant values is stiff along one of the two alone, and 1e16 times softer
    along the other: of the groups themselves, the softer part would be lost. More groups stay.
    """
    groups = member.shape[1]
    if groups > 2:
        return np.eye(groups)
    turn = _library(member).ones_like(member[:groups])
    turn[1:, 1:] = -1.0
    return turn


def _inverse(matrix: Array) -> Array:
    """Inverse of a matrix; of up to two rows by formula, on its device."""
    if len(matrix) < 2:
        return 1.0 / matrix
    if len(matrix) > 2:
        return np.linalg.inv(matrix)
    xp = _library(matrix)
    (a, b), (c, d) = matrix
    return xp.stack([xp.stack([d, -b]), xp.stack([-c, a])]) / (a * d - b * c)


def _balancing(product: Array, aim: Array) -> Array:
    """What brings products that are far from the aim nearer to it."""
    xp = _library(product)
    wanted = xp.clip(product, aim / _LOPSIDED, aim * _LOPSIDED)
    return xp.clip(wanted - product, -_LOPSIDED * aim, None)


def _factorised(matrix: Array, workers: Workers) -> Solve | None:
    """Factorise a matrix, which may be overwritten; returns what solves with it, several columns.

    None if it is not positive definite.
    """
    if isinstance(matrix, np.ndarray):
        if not _cholesky(matrix, workers):
            return None
        return lambda right: dpotrs(matrix.T, right, lower=0)[0]
    linalg = _library(matrix).linalg
    factor, failed = linalg.cholesky_ex(matrix)
    if int(failed):
        return None
    return lambda right: _library(right).cholesky_solve(right, factor)


def _cholesky(A: np.ndarray, workers: Workers) -> bool:
    """Write the factor L of ``A = L L'`` over the lower triangle; whether there is one.

    By tiles, so that threads share the work and a stop is heard.
    """
    m = len(A)
    for first in range(0, m, _TILE):
        stop = min(first + _TILE, m)
        own, done = slice(first, stop), slice(0, first)

        def update(rows: slice, own: slice = own, done: slice = done) -> None:
            A[rows, own] -= A[rows, done] @ A[own, done].T

        workers.map(update, _tiles(first, m) if first else [])
        factor, failed = dpotrf(A[own, own].T, lower=0)
        if failed:
            return False
        A[own, own] = factor.T

        def solve(rows: slice, own: slice = own, factor: np.ndarray = factor) -> None:
            A[rows, own] = dtrsm(1.0, factor, A[rows, own].T, lower=0, trans_a=1).T

        workers.map(solve, _tiles(stop, m))
    return True


def _tiles(first: int, stop: int) -> list[slice]:
    return [slice(k, min(k + _TILE, stop)) for k in range(first, stop, _TILE)]
