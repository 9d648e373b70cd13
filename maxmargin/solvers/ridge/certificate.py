"""The certificate of ridge regression: a residual, and what it bounds.

The bounds are derived in :mod:`maxmargin.solvers.ridge.problem`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from maxmargin.certificate import Certificate
from maxmargin.gram.spectrum import Definiteness, Spectrum, known_definiteness


@dataclass(frozen=True, repr=False, kw_only=True)
class RidgeCertificate(Certificate):
    """How exactly the system of ridge regression is solved, and what its residual r bounds.

    Attributes
    ----------
    objective : float
        ``1/2 sum_i s_i (f(x_i) - t_i)^2 + alpha/2 |w|^2`` at the answer.
    gap : float
        The least objective is lower by so much at most.
    residual : float
        Root of the gap over the objective of zero weights: ``|r|`` over the length of the targets.
        The values at the training rows are off by so much of the targets' size, in the root mean
        square.
    rounding : float
        How much larger than ``gap`` the true one may be, since float64 rounds.
    coefficient_error : float
        Bound on the distance of the coefficients from the exact ones.
    norm_error : float
        Bound on that of w: a value f(x) is off by at most so much times ``sqrt(k(x, x))``.
    solver : str
        The method that was used, in words.

    Examples
    --------
    >>> from maxmargin import KernelRidge
    >>> print(KernelRidge(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.1]).certificate_)
    converged: values are exact to ... of the targets' size
      objective       ...
      gap             ... (and ... for rounding)
      residual        ... (tol 0.0001)
      coefficients    within ... of the exact ones
      values          within ... sqrt(k(x, x)) of the exact ones
      solver          cholesky
      kernel          positive semidefinite by construction
    """

    objective: float
    gap: float
    residual: float
    rounding: float
    coefficient_error: float
    norm_error: float
    solver: str
    spectrum: Definiteness | Spectrum = field(compare=False)

    @property
    def violation(self) -> float:
        """The relative residual."""
        return self.residual

    @property
    def definiteness(self) -> Definiteness:
        """What is known of the Gram matrix."""
        return known_definiteness(self.spectrum)

    @property
    def claim(self) -> str:
        """What the residual proves."""
        solved = f"the equations hold to {self.residual:.2g} of the targets' size"
        if self.definiteness == Definiteness.INDEFINITE:
            return f"{solved}: the kernel matrix is indefinite, so that nothing is minimised by it"
        if not self.converged and self.residual <= self.tol:  # of a search over alpha
            return f"{solved} for this alpha, but not every alpha was tried"
        if not self.converged:
            return f"not exact, the best objective may be lower by up to {self.gap:.3g}"
        claim = f"values are exact to {self.residual:.2g} of the targets' size"
        if self.definiteness == Definiteness.UNKNOWN:
            claim += (
                " if the kernel is positive semidefinite, which a sample of the training points "
                f"did not refute; {solved} in any case"
            )
        return claim

    def numbers(self) -> dict[str, str]:
        """Objective, gap, residual, what it bounds, and what is known of the kernel."""
        said = {
            "objective": f"{self.objective:.10g}",
            "gap": f"{self.gap:.3g} (and {self.rounding:.2g} for rounding)",
            "residual": f"{self.residual:.3g} (tol {self.tol:g})",
            "coefficients": f"within {self.coefficient_error:.2g} of the exact ones",
            "values": f"within {self.norm_error:.2g} sqrt(k(x, x)) of the exact ones",
            "solver": self.solver,
            "kernel": str(self.definiteness),
        }
        if self.definiteness == Definiteness.INDEFINITE:
            for bound in ("gap", "coefficients", "values"):
                said[bound] = "not bounded"
        return said
