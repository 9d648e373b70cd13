"""The certificate of a Gaussian process: how near its likelihood is to a top, and its system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.certificate import GradientCertificate
from maxmargin.solution import Status


@dataclass(frozen=True, repr=False, kw_only=True)
class LikelihoodCertificate(GradientCertificate):
    """How near a Gaussian process is to a maximum of its likelihood, and how exact its mean.

    Attributes
    ----------
    objective : float
        -log p of the targets (as normalised).
    gradient_norm : float
        Largest derivative of it by the logarithm of a parameter, over the number of targets; of
        parameters at a bound, only what draws away from it counts. Zero where nothing is free.
    residual : float
        ``|t - C a|`` over ``|t|`` in float64, C being the covariance of the targets: what the mean
        at the training rows is off by.
    at_bounds : tuple of str
        Parameters that ended at a bound.
    free : int
        Parameters that the likelihood was maximised over.
    left : float
        How much a Newton step promises to raise the logarithm of the likelihood: half the square of
        the distance from the top in standard errors of the parameters. nan where it is not known,
        as after L-BFGS-B.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import GaussianProcessRegressor
    >>> from maxmargin.kernels import RBF
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.cos(9 * X[:, 0])
    >>> model = GaussianProcessRegressor(1.0 * RBF(gamma=1.0), noise_level=0.1).fit(X, y)
    >>> print(model.certificate_)
    converged: stationary; others may be better, to a gradient of ...
      objective       ...
      gradient        ... (tol 1e-06)
      solver          average information, ...
      residual        ... of the targets' size
      at bounds       none of 3
    """

    residual: float
    at_bounds: tuple[str, ...] = ()
    free: int = 0
    left: float = np.nan
    convex: bool = False

    @property
    def claim(self) -> str:
        """What the numbers prove."""
        if not self.free:
            return "no parameter is free: nothing was maximised"
        if self.status == Status.NO_IMPROVEMENT:
            errors = (2.0 * max(self.left, 0.0)) ** 0.5
            return (
                "stationary to the rounding of the likelihood; others may be better; parameters "
                f"are {errors:.2g} standard errors from the top, by Newton's step"
            )
        return super().claim

    def numbers(self) -> dict[str, str]:
        """Likelihood, gradient, method, residual, bounds."""
        held = f"{', '.join(self.at_bounds) or 'none'} of {self.free}"
        return super().numbers() | {
            "residual": f"{self.residual:.2g} of the targets' size",
            "at bounds": held,
        }
