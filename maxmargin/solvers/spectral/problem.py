"""Kernel principal components: the leading eigenvectors of the Gram matrix, centred.

    Kc = H K H,   H = I - 1 1'/n,        Kc v = lambda v

A component is ``sum_i v_i phi_i / sqrt(lambda)`` with the centred ``phi_i``: it has length one, and
the projections of the training rows onto it are ``sqrt(lambda) v``. For orthonormal V with Ritz
values L and the residual ``R = Kc V - V L``,

    |lambda_j - l_j| <= |R|_2           for some k eigenvalues of Kc (Weyl, Kahan)
    |lambda - l_j|   <= |r_j|           for some eigenvalue
    sin(angle of v_j to its space) <= |r_j| / gap_j      (Davis and Kahan)

where ``gap_j`` is the distance from l_j to the rest of the spectrum. All this is so for the matrix
as float64 has it; the true one differs by ``|E|_2``, the rounding of kernel values and sums, and R
by as much. What is claimed has both. No residual tells whether an
eigenvector was missed. The trace does: eigenvalues beside these sum to ``tr Kc - sum_j l_j``, and
none is negative, so that none is larger; nor is its square than what these leave of ``|Kc|_F^2``.

References: Schoelkopf, Smola and Mueller, Neural Computation 10, 1998; Parlett, The Symmetric
Eigenvalue Problem, 1998, chapters 4, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.blas import dsyrk

from maxmargin.backends.threads import ALONE, Workers
from maxmargin.certificate import Certificate
from maxmargin.gram import Definiteness, Gram, Spectrum
from maxmargin.gram.spectrum import known_definiteness
from maxmargin.solution import Status
from maxmargin.solvers.products import GramProducts

_EPS = float(np.finfo(np.float64).eps)
_SUMMED = 64  # terms that BLAS adds before it rounds anew, about


@dataclass(frozen=True, repr=False, kw_only=True)
class SpectralCertificate(Certificate):
    """How exact principal components are; residuals recomputed in float64 from the Gram matrix.

    Attributes
    ----------
    residuals : float array (k,)
        ``|Kc v - lambda v|`` of each: some eigenvalue is so near to ``lambda``, but for rounding.
    angles : float array (k,)
        Bounds on the sines of the angles between eigenvectors and exact ones, residual and rounding
        over the gap, if none is missing between them; one where they cannot be told from their
        neighbours.
    residual : float
        Length of all residuals together over the largest eigenvalue: what ``tol`` bounds.
    orthogonality : float
        ``|V'V - I|``, largest entry.
    rounding : float
        How much larger than ``residual`` the true one may be, since float64 rounds. Beyond 1e-7,
        and ``tol``, the components are called stalled: centre or scale the data.
    error : float
        ``residual + rounding``: eigenvalues are so near to exact ones, over the largest.
    missing : float
        No eigenvalue above this can be missing.
    least : float
        Smallest eigenvalue among those found.
    explained : float
        Share of the variance in feature space that the components have.
    solver : str

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import KernelPCA
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.5], [3.0, 3.0]])
    >>> print(KernelPCA(n_components=1).fit(X).certificate_)
    converged: eigenvalues are exact to ... of the largest
      residual        ... (tol 1e-10; rounding ...)
      orthogonality   ...
      angles          within ... rad of exact components
      missing         none above ..., the smallest found is 8...
      explained       0.8...
      solver          dense
      kernel          positive semidefinite by construction
    """

    residuals: np.ndarray = field(compare=False)
    angles: np.ndarray = field(compare=False)
    residual: float
    orthogonality: float
    rounding: float
    missing: float
    least: float
    explained: float
    solver: str
    spectrum: Definiteness | Spectrum = field(compare=False)

    @property
    def violation(self) -> float:
        """The relative residual."""
        return self.residual

    @property
    def error(self) -> float:
        """Bound on the error of eigenvalues, over the largest."""
        return self.residual + self.rounding

    @property
    def definiteness(self) -> Definiteness:
        """What is known of the Gram matrix."""
        return known_definiteness(self.spectrum)

    @property
    def claim(self) -> str:
        """What the residuals prove."""
        what = "exact" if self.converged else "not exact, but known"
        claim = f"eigenvalues are {what} to {self.error:.2g} of the largest"
        if self.definiteness == Definiteness.INDEFINITE:
            return f"{claim}; the kernel is indefinite, so that they are variances of no features"
        return claim

    def numbers(self) -> dict[str, str]:
        """Residuals, what they bound, and what is known of the kernel."""
        angle = float(self.angles.max(initial=0.0))
        said = f"within {angle:.2g} rad of exact components"
        if angle >= 1.0:
            said = f"some of {len(self.angles)} components cannot be told from their neighbours"
        missing = f"none above {self.missing:.3g}, the smallest found is {self.least:.3g}"
        if self.definiteness not in (Definiteness.PROVEN, Definiteness.COMPUTED):
            missing = "not bounded: the kernel may be indefinite"
        return {
            "residual": f"{self.residual:.3g} (tol {self.tol:g}; rounding {self.rounding:.2g})",
            "orthogonality": f"{self.orthogonality:.2g}",
            "angles": said,
            "missing": missing,
            "explained": f"{self.explained:.6f}",
            "solver": self.solver,
            "kernel": str(self.definiteness),
        }


@dataclass(frozen=True)
class SpectralProblem:
    """The leading eigenvectors of a centred Gram matrix.

    Parameters
    ----------
    gram : Gram
        Of n points.
    count : int
        Eigenvectors wanted.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.spectral.problem import SpectralProblem
    >>> problem = SpectralProblem(Gram.of(np.array([[1.0], [3.0]]), Linear()), count=1)
    >>> problem.products() @ np.array([[1.0], [-1.0]])
    array([[ 2.],
           [-2.]])
    """

    gram: Gram
    count: int

    @property
    def n(self) -> int:
        """Number of points."""
        return self.gram.n

    def products(self, workers: Workers = ALONE) -> GramProducts:
        """Products with the matrix, which is kept where it has room."""
        kept = not self.gram.on_device and 8 * self.n**2 <= self.gram.memory
        return GramProducts(self.gram, kept, centred=True, workers=workers)

    def certificate(
        self,
        values: np.ndarray,
        vectors: np.ndarray,
        products: GramProducts,
        solver: str,
        status: Status,
        tol: float,
        beyond: Sequence[float] | np.ndarray = (),
        complete: bool = False,
    ) -> SpectralCertificate:
        """Judge eigenvalues, largest first, and their vectors, by a product with the matrix.

        ``beyond`` are the values after these, largest first. They are eigenvalues where the method
        is ``complete``. Otherwise they are Ritz values, each a lower bound on the eigenvalue in its
        place; so the trace and the squares leave the less for the next eigenvalue.
        """
        R = products @ vectors - vectors * values
        residuals = np.linalg.norm(R, axis=0)
        largest = float(np.abs(values).max(initial=0.0)) or 1.0
        residual = float(np.linalg.norm(R)) / largest
        trace = float(products.diagonal.sum())
        beyond = np.asarray(beyond, dtype=np.float64)
        others = np.maximum(beyond[1:], 0.0)
        missing = max(trace - float(values.sum()) - float(others.sum()), 0.0)
        rounding = self.gram.rounding + min(self.n, _SUMMED) + self.n / _SUMMED + 4.0
        rounding *= _EPS * float(np.abs(self.gram.diagonal).sum()) / largest
        if products.K is not None:
            size = float(np.linalg.norm(products.K))
            squares = size**2 - float(values @ values) - float(others @ others)
            squares = max(squares, 0.0)  # known to 2 size |E|
            missing = min(missing, (squares + 2.0 * size * rounding * largest) ** 0.5)
        if complete:
            missing = max(float(beyond[:1].sum()), 0.0)
        following = missing
        missing += rounding * largest
        if residual <= tol:
            status = Status.CONVERGED.beside(rounding, tol)
        elif status is Status.CONVERGED:
            status = Status.STALLED
        return SpectralCertificate(
            residuals=residuals,
            angles=_angles(values, residuals, residual * largest, rounding * largest, following),
            residual=residual,
            orthogonality=_skewness(vectors),
            rounding=rounding,
            missing=missing,
            least=float(values.min(initial=np.inf)),
            explained=min(float(values.sum()) / trace, 1.0) if trace > 0 else 1.0,
            solver=solver,
            spectrum=self.gram.spectrum,
            status=status,
            tol=tol,
        )


def _skewness(vectors: np.ndarray) -> float:
    """Largest entry of ``|V'V - I|``, of which one triangle is enough."""
    square = dsyrk(1.0, vectors, trans=1)
    square[np.diag_indices_from(square)] -= 1.0
    return float(np.abs(square).max(initial=0.0))


def _angles(
    values: np.ndarray, residuals: np.ndarray, together: float, rounding: float, following: float
) -> np.ndarray:
    """Davis and Kahan's bounds: residuals over the distances of eigenvalues to all others.

    Those are known to the length of all residuals together; rounding adds to everything.
    """
    if not len(values):
        return np.zeros(0)
    around = np.concatenate([[np.inf], values, [following]])
    gaps = np.minimum(around[:-2] - values, values - around[2:]) - together - rounding
    sines = np.divide(residuals + rounding, gaps, out=np.ones_like(values), where=gaps > 0)
    return np.minimum(sines, 1.0)


@dataclass(frozen=True)
class SpectralSolution:
    """Eigenvalues, largest first, and eigenvectors (n, k), with their certificate."""

    values: np.ndarray
    vectors: np.ndarray
    means: np.ndarray
    n_iter: int
    certificate: SpectralCertificate
