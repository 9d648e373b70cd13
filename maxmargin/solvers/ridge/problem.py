"""Kernel ridge regression: the dual representation of regularised least squares, as a system.

    minimise  J(w) = 1/2 sum_i s_i (w . phi(x_i) - t_i)^2 + lambda/2 |w|^2

with weights s of the rows. Where the gradient is zero, ``w = sum_i a_i phi(x_i)`` with
``a_i = -s_i (w . phi(x_i) - t_i) / lambda``, which is to say (S = diag(s))

    (K + lambda S^-1) a = t,    that is    (S^(1/2) K S^(1/2) + lambda I) b = S^(1/2) t
    with  a = S^(1/2) b.

The second form is solved: its eigenvalues are lambda at least. With the residual
``r = S^(1/2) t - (S^(1/2) K S^(1/2) + lambda I) b`` of any b, and for a positive semidefinite K,

    J(w) = 1/2 |r|^2 + lambda/2 b'(S^(1/2) t + r)            the objective
    J(w) - J* <= gap = 1/2 |r|^2                             J(w) - gap is a dual objective
    |b - b*|  <= |r| / lambda
    |w - w*|  <= |r| / (2 sqrt(lambda)),  so  |f(x) - f*(x)| <= that times sqrt(k(x, x))
    sum_i s_i (f(x_i) - f*(x_i))^2 <= |r|^2

since in an eigenvector of the eigenvalue m these are mu/(1 + mu), 1/(1 + mu), sqrt(mu)/(1 + mu) and
mu/(1 + mu) times what the right sides have, for ``mu = m / lambda``.

Reference: seed 001, "Dual representations" (with s = 1); Saunders, Gammerman and Vovk, ICML 1998.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import lstsq

from maxmargin.backends.cpu import spread_out
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.gram import Definiteness, Gram, Spectrum
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure
from maxmargin.solvers.ridge.certificate import RidgeCertificate
from maxmargin.solvers.ridge.preconditioner import Columns

_SUMMED = 64  # terms that BLAS adds before it rounds anew, about
_ROOTS = 10.0  # of n: a preconditioner's columns, which take the time of a few products
_SHARE = 0.5  # of the memory, for them
_DEVICE_SHARE = 0.3  # of a GPU's, which may have the whole matrix as well
_SUBSET, _SUBSET_VALUES = 256, 1 << 21  # unknowns of subset_solution, and values: some 50 ms
_EPS = float(np.finfo(np.float64).eps)


class NotDefiniteError(ValueError):
    """A system's matrix is not positive definite, as far as float64 can tell."""


class RidgeSystem(ABC):
    """A system ``(A + alpha I) b = right``, A positive semidefinite, whose b is a ridge regression.

    Attributes
    ----------
    alpha : float
        The lecture's lambda.
    memory : int
        Bytes for A, or for what stands in for it.
    rank : int
        Columns that a preconditioner of low rank usually has.
    solves_for : {"multipliers", "weights"}
        What b is.
    """

    alpha: float
    solves_for: ClassVar[str] = "multipliers"

    @property
    @abstractmethod
    def memory(self) -> int:
        """Bytes for A, or for what stands in for it."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Columns that a preconditioner of low rank usually has."""

    def columns(self, most: int | None, workers: Workers = ALONE) -> Any:
        """Room for so many columns of a factor of A, or for the usual number."""
        room = _SHARE * self.memory / (8 * self.n)
        return Columns(self.rows, self.n, _count(most, self.rank, room, self.n), workers)

    @property
    @abstractmethod
    def right(self) -> np.ndarray:
        """Right sides (n, m), one for each output."""

    @property
    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Diagonal of A."""

    @abstractmethod
    def matrix(self, workers: Workers = ALONE) -> np.ndarray:
        """A, for the caller to overwrite."""

    @abstractmethod
    def rows(self, some: np.ndarray) -> np.ndarray:
        """Rows of A."""

    @abstractmethod
    def product(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``(A + alpha I) b`` for b (n, m)."""

    def float32_product(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray | None:
        """The same from values in float32; None where that is no faster, or has no digits."""
        return None

    @property
    @abstractmethod
    def size(self) -> np.ndarray:
        """What the length of each residual is compared with."""

    @abstractmethod
    def objectives(self, b: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J of each output, and its gap."""

    def measured(self, violation: float, b: np.ndarray, residual: np.ndarray) -> Measure:
        """Return the measure of a run at b: the objectives of all outputs together."""
        value, gap = (float(each.sum()) for each in self.objectives(b, residual))
        return Measure(violation, value, value - gap, gap)

    def values(self, b: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """J of each output as it is certified, which may take another pass over the rows."""
        return self.objectives(b, residual)[0]

    @abstractmethod
    def bounds(self, length: float) -> tuple[float, float, float]:
        """What a residual of this length bounds: the gap, the error of coefficients, that of w."""

    @abstractmethod
    def rounding(self, b: np.ndarray) -> np.ndarray:
        """Bound on the length of what rounding adds to each residual."""

    @property
    @abstractmethod
    def spectrum(self) -> Definiteness | Spectrum:
        """What is known of the signs of A's eigenvalues."""

    @abstractmethod
    def refusal(self, row: int | None = None) -> str:
        """Say why the system is not positive definite, and what to do."""

    @property
    def n(self) -> int:
        """Unknowns of an output."""
        return len(self.right)

    def residual(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """What b leaves of the right sides."""
        return self.right - self.product(b, workers)

    def subset_solution(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Solve for a spread-out subset of the unknowns, the others zero.

        This is the answer of a method that is stopped before its first step.

        Returns
        -------
        b, residual : float arrays (n, m)
        size : int
            Number of unknowns that were solved for.
        """
        count = min(_SUBSET, max(_SUBSET_VALUES // self.n, 1))
        subset, b = spread_out(self.n, count), np.zeros_like(self.right)
        rows = self.rows(subset)
        block = rows[:, subset] + self.alpha * np.eye(len(subset))
        b[subset] = lstsq(block, self.right[subset], lapack_driver="gelsy")[0]
        return b, self.right - rows.T @ b[subset] - self.alpha * b, len(subset)

    def violation(self, residual: np.ndarray) -> np.ndarray:
        """Length of each residual, in the units of ``tol``."""
        return np.linalg.norm(residual, axis=0) / self.size

    def certificate(
        self, b: np.ndarray, residual: np.ndarray, solver: str, status: Status, tol: float
    ) -> RidgeCertificate:
        """Judge b by its residual, output by output."""
        objectives, gaps = self.values(b, residual), self.objectives(b, residual)[1]
        violation, lengths = self.violation(residual), np.linalg.norm(residual, axis=0)
        uncertain, spectrum = self.rounding(b), self.spectrum

        def of(k: int) -> RidgeCertificate:
            judged = status
            if violation[k] <= tol:
                judged = Status.CONVERGED
            elif status is Status.CONVERGED:
                judged = Status.STALLED
            gap, coefficients, norm = self.bounds(float(lengths[k] + uncertain[k]))
            return RidgeCertificate(
                objective=float(objectives[k]),
                gap=float(gaps[k]),
                residual=float(violation[k]),
                rounding=gap - float(gaps[k]),
                coefficient_error=coefficients,
                norm_error=norm,
                solver=solver,
                spectrum=spectrum,
                status=judged,
                tol=tol,
            )

        return RidgeCertificate.worst([of(k) for k in range(b.shape[1])])


@dataclass(frozen=True)
class RidgeProblem(RidgeSystem):
    """The system of kernel ridge regression, with ``A = S^(1/2) K S^(1/2)``.

    Parameters
    ----------
    gram : Gram
        Of n points.
    target : float array (n, m)
        Of m outputs.
    alpha : float
        The lecture's lambda.
    weight : float array (n,)
        Of the rows, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.ridge.problem import RidgeProblem
    >>> gram = Gram.of(np.array([[1.0], [2.0]]), Linear())
    >>> problem = RidgeProblem(gram, np.array([[1.0], [2.0]]), alpha=5.0, weight=np.ones(2))
    >>> problem.residual(np.array([[0.1], [0.2]]))
    array([[0.],
           [0.]])
    """

    gram: Gram
    target: np.ndarray
    alpha: float
    weight: np.ndarray

    @property
    def memory(self) -> int:
        """Bytes that the Gram matrix may take."""
        return self.gram.memory

    @property
    def rank(self) -> int:
        """Some roots of n: as many columns as take the time of a few products."""
        return int(_ROOTS * self.n**0.5)

    def columns(self, most: int | None, workers: Workers = ALONE) -> Any:
        """Room for columns of a factor, where the matrix is."""
        if not self.gram.on_device:
            return super().columns(most, workers)
        gram = self.gram.device
        room = _DEVICE_SHARE * gram.matrix.memory / (4 * self.n)
        return gram.low_rank(self.root, _count(most, self.rank, room, self.n))

    @cached_property
    def root(self) -> np.ndarray:
        """Roots of the weights, (n, 1)."""
        return np.sqrt(self.weight)[:, None]

    @cached_property
    def right(self) -> np.ndarray:
        """Right sides of the system."""
        return self.root * self.target

    @cached_property
    def size(self) -> np.ndarray:
        """Lengths of the right sides; one for those that are zero."""
        return _positive(np.linalg.norm(self.right, axis=0))

    @property
    def diagonal(self) -> np.ndarray:
        """Diagonal of the scaled Gram matrix."""
        return self.gram.diagonal * self.weight

    def matrix(self, workers: Workers = ALONE) -> np.ndarray:
        """Return the scaled Gram matrix."""
        return self._scaled(self.gram.dense(workers), self.root)

    def rows(self, some: np.ndarray) -> np.ndarray:
        """Rows of the scaled Gram matrix."""
        return self._scaled(self.gram.rows(some), self.root[some])

    def _scaled(self, K: np.ndarray, root: np.ndarray) -> np.ndarray:
        if (self.weight != 1.0).any():
            K *= root
            K *= self.root.T
        return K

    def product(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """The system's matrix times b (n, m)."""
        return self.root * self.gram.matmat(self.root * b, workers=workers) + self.alpha * b

    def float32_product(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray | None:
        """The same from kernel values in float32, where they are made anew for each product."""
        gram = self.gram
        if not gram.fits_float32 or not gram.is_tame or gram.program.product_scale is not None:
            return None
        return self.root * gram.float32_matmat(self.root * b, workers) + self.alpha * b

    def coefficients(self, b: np.ndarray) -> np.ndarray:
        """Coefficients a of the expansions, (n, m)."""
        return self.root * b

    def objectives(self, b: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J of each output, and its gap."""
        gap = 0.5 * np.einsum("ij,ij->j", residual, residual)
        return gap + 0.5 * self.alpha * np.einsum("ij,ij->j", b, self.right + residual), gap

    def bounds(self, length: float) -> tuple[float, float, float]:
        """Gap, error of the coefficients and that of w: see the head of this file."""
        alpha, gap = self.alpha, 0.5 * length**2
        if not alpha:
            return gap, np.inf, np.inf
        return gap, float(self.root.max()) * length / alpha, 0.5 * length / alpha**0.5

    def rounding(self, b: np.ndarray) -> np.ndarray:
        """Bound on the length of what rounding adds to each residual.

        The kernel's values have their own rounding, and a sum is one of blocks of some terms.
        """
        lengths = self.root[:, 0] * np.sqrt(np.abs(self.gram.diagonal))
        roundings = self.gram.rounding + min(self.n, _SUMMED) + self.n / _SUMMED + 2.0
        values = roundings * float(np.linalg.norm(lengths)) * (lengths @ np.abs(b))
        return _EPS * (values + self.size + self.alpha * np.linalg.norm(b, axis=0))

    @property
    def spectrum(self) -> Definiteness | Spectrum:
        """What is known of the Gram matrix."""
        return self.gram.spectrum

    def refusal(self, row: int | None = None) -> str:
        """Say why the system's matrix is not positive definite, and what to do."""
        where = "" if row is None else f" (the first {row + 1} rows show it)"
        kernel, alpha = self.gram.kernel, self.alpha
        if self.gram.definiteness is Definiteness.INDEFINITE:
            return (
                f"K + alpha I is not positive definite for alpha={alpha:g}{where}: the kernel "
                f"{kernel!r} is indefinite on these data, and its Gram matrix has an eigenvalue "
                "below -alpha. Raise alpha above its size, or use a kernel that is valid: "
                "check_valid(kernel, X) says which eigenvalues there are."
            )
        if not alpha:
            return (
                f"alpha=0 asks for K a = y, and the Gram matrix of the kernel {kernel!r} is "
                f"singular to float64{where}: rows that are equal or nearly, or more rows than the "
                "feature space has dimensions. Give an alpha > 0, or take LinearRegression, which "
                "has the solution of least norm, for the linear kernel."
            )
        return (
            f"K + alpha I is not positive definite in float64 for alpha={alpha:g}{where}: alpha is "
            f"below the rounding of the kernel's values, which are up to "
            f"{float(np.abs(self.gram.diagonal).max()):.3g}. Raise alpha, or scale the data."
        )


@dataclass(frozen=True)
class RidgeSolution:
    """An answer: ``b`` (n, m) of the system, with its residual."""

    problem: RidgeSystem
    b: np.ndarray
    residual: np.ndarray
    n_iter: int
    status: Status
    solver: str

    def certificate(self, tol: float) -> RidgeCertificate:
        """Judge the answer."""
        return self.problem.certificate(self.b, self.residual, self.solver, self.status, tol)


def _count(most: int | None, usual: int, room: float, n: int) -> int:
    """Columns of a preconditioner: as many as asked for, or the usual number, as have room."""
    return min(usual if most is None else most, int(room) if most is None else n, n)


def _positive(size: np.ndarray) -> np.ndarray:
    """Sizes to divide by: one in place of zero."""
    return np.where(size > 0, size, 1.0)
