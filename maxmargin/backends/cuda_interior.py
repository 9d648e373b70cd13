"""A quadratic programme in a box by an interior-point method: dense, in float64, on any device.

    minimise     1/2 d' H d - v' d          for x = b + d
    subject to   lower <= x <= upper,  the sum of d in each group zero

Steps of two crawl where H is ill-conditioned and thousands of variables are free at once. Here
every step moves all variables. With multipliers z and w of the two walls, s = x - lower,
t = upper - x and a level l for each group, Newton's method is applied to

    v - H d = l + w - z,       s z = t w = mu,

while mu goes to zero. A step is one Cholesky factorisation of ``H + diag(z / s + w / t)``, which
is better conditioned than H; 10 to 30 of them suffice, however ill-conditioned H is.

References: Mehrotra, SIAM J. Optimization 2, 1992 (predictor and corrector); Gondzio, Computational
Optimization and Applications 6, 1996 (a further corrector for the same factorisation); Ferris and
Munson, SIAM J. Optimization 13, 2003 (for support vector machines).
"""

from __future__ import annotations

from typing import NamedTuple

import torch

MATRICES = 3  # of the size of H that are held at once: H, H + diagonal, its factor
_MOST_STEPS = 60
_INSIDE = 1e-3  # of the distance between the walls, that the first point keeps from either
_CLOSEST = 1e-16  # of that distance, that every point keeps
_RIDGE = 1e-14  # of the mean of the diagonal: what rounding does to it anyway
_SHORT = 0.995  # of the way to the nearest wall is taken
_LONG = 0.9  # a step this long needs no further corrector
_LOPSIDED = 10.0  # products s z this many times mu, or less than it by as much, are corrected
_AT_WALL = 0.3  # of the violation asked for: with a larger multiplier a variable is at its wall


class Minimum(NamedTuple):
    """Where the method ended: the point, its scores, the violation left and the steps taken."""

    x: torch.Tensor
    v: torch.Tensor
    violation: float
    steps: int


class _Direction(NamedTuple):
    """A direction for the point, the levels and the multipliers, and how far it can be gone."""

    x: torch.Tensor
    level: torch.Tensor
    z: torch.Tensor
    w: torch.Tensor
    length: torch.Tensor


class _Slacks(NamedTuple):
    """Distances from the two walls, and their multipliers."""

    s: torch.Tensor
    t: torch.Tensor
    z: torch.Tensor
    w: torch.Tensor


def minimise(
    H: torch.Tensor,
    v: torch.Tensor,
    b: torch.Tensor,
    lower: torch.Tensor,
    upper: torch.Tensor,
    member: torch.Tensor,
    target: float,
) -> Minimum | None:
    """Minimise until no KKT condition is violated by more than ``target``, or steps run out.

    Parameters
    ----------
    H : float64 tensor (m, m)
        Positive semidefinite. Where a factorisation shows that it is not, the answer is None.
    v : float64 tensor (m,)
        Negative gradient at b.
    b, lower, upper : float64 tensors (m,)
        All finite, lower < upper.
    member : float64 tensor (m, groups)
        One where a variable belongs to a group, otherwise zero.
    target : float
        Largest violation, of what a level leaves of v.
    """
    width = upper - lower
    x = b.clamp(lower + _INSIDE * width, upper - _INSIDE * width)
    v = v - H @ (x - b)
    sums = member.T @ b
    level = (member.T @ v) / member.sum(0).clamp(min=1)
    score = v - member @ level
    common = score.abs().mean() + target
    z, w = (-score).clamp(min=0) + common, score.clamp(min=0) + common
    ridge, matrix = _RIDGE * H.diagonal().mean(), torch.empty_like(H)
    steps = 0
    while True:
        slacks = _Slacks(x - lower, upper - x, z, w)
        settled = _settled(x, lower, upper, slacks, target)
        v_settled = v - H @ (settled - x)
        violation = _violation(settled, v_settled, lower, upper, member)
        if violation <= target or steps == _MOST_STEPS:
            return Minimum(settled, v_settled, violation, steps)
        matrix.copy_(H).diagonal().add_(z / slacks.s + w / slacks.t + ridge)
        factor, failed = torch.linalg.cholesky_ex(matrix)
        if int(failed):
            return None
        way = _direction(factor, member, sums - member.T @ x, v - member @ level, slacks)
        step = way.length * way.x
        x = (x + step).clamp(lower + _CLOSEST * width, upper - _CLOSEST * width)
        v = v - H @ step
        level, z, w = (
            old + way.length * new
            for old, new in zip((level, z, w), (way.level, way.z, way.w), strict=True)
        )
        steps += 1


def _settled(
    x: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, slacks: _Slacks, target: float
) -> torch.Tensor:
    """Put every variable at the nearer wall whose multiplier says that it belongs there."""
    s, t, z, w = slacks
    low = (s < t) & (z > _AT_WALL * target)
    high = (s >= t) & (w > _AT_WALL * target)
    return torch.where(low, lower, torch.where(high, upper, x))


def _violation(
    x: torch.Tensor,
    v: torch.Tensor,
    lower: torch.Tensor,
    upper: torch.Tensor,
    member: torch.Tensor,
) -> float:
    """Largest violation of a KKT condition."""
    rises = torch.where(x < upper, v, -torch.inf)
    falls = torch.where(x > lower, v, torch.inf)
    if not member.shape[1]:
        return float(torch.maximum(rises.max(), -falls.min()).clamp(min=0))
    own = member > 0
    top = torch.where(own, rises[:, None], -torch.inf).amax(0)
    bottom = torch.where(own, falls[:, None], torch.inf).amin(0)
    return float((top - bottom).clamp(min=0).amax())


def _direction(
    factor: torch.Tensor,
    member: torch.Tensor,
    missing: torch.Tensor,
    residual: torch.Tensor,
    slacks: _Slacks,
) -> _Direction:
    """Predict where ``mu = 0`` leads, aim at the mu that this makes likely, correct the products.

    ``missing`` is what the sums of the groups lack, ``residual`` is v less the levels.
    """
    s, t, z, w = slacks
    m = len(s)
    first = torch.cholesky_solve(torch.column_stack([residual, member]), factor)
    spread = first[:, 1:]
    among = _inverse(member.T @ spread)

    def along(x: torch.Tensor, low: torch.Tensor | float, high: torch.Tensor | float) -> _Direction:
        """Direction to the products ``s z = low`` and ``t w = high``, from a solution for x."""
        level = among @ (member.T @ x - missing)
        x = x - spread @ level
        dz, dw = (low - z * x) / s - z, (high + w * x) / t - w
        fastest = torch.stack([-x / s, x / t, -dz / z, -dw / w]).max()
        return _Direction(x, level, dz, dw, _SHORT / fastest.clamp(min=_SHORT))

    def towards(low: torch.Tensor, high: torch.Tensor) -> _Direction:
        side = residual - high / t + low / s
        return along(torch.cholesky_solve(side[:, None], factor)[:, 0], low, high)

    def products(way: _Direction, far: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
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
    far = (1.1 * way.length + 0.1).clamp(max=1.0)
    near_low, near_high = (_balancing(product, aim) for product in products(way, far))
    other = towards(low + near_low, high + near_high)
    return other if bool(other.length > way.length) else way


def _inverse(matrix: torch.Tensor) -> torch.Tensor:
    """Inverse of a matrix of no, one or two rows, without leaving the device."""
    if len(matrix) < 2:
        return 1.0 / matrix
    (a, b), (c, d) = matrix
    return torch.stack([torch.stack([d, -b]), torch.stack([-c, a])]) / (a * d - b * c)


def _balancing(product: torch.Tensor, aim: torch.Tensor) -> torch.Tensor:
    """What brings products that are far from the aim nearer to it."""
    wanted = product.clamp(aim / _LOPSIDED, aim * _LOPSIDED)
    return (wanted - product).clamp(min=-_LOPSIDED * aim)
