"""Certificates: what an answer claims, how far it can be trusted, in numbers and in words.

Every fit ends with one, made from the problem and not from what its method believes. All print and
compare in the same way: a status and a claim, then the numbers behind it, of which one is compared
with ``tol``.

=======================  ==========================================  ===========================
certificate              of                                          compared with tol
=======================  ==========================================  ===========================
`DualCertificate`        kernel machines                             violation of KKT conditions
`RiskCertificate`        regularised risks: linear machines          relative duality gap
`KernelRiskCertificate`  kernel machines with a bound on the norm    relative duality gap
`GradientCertificate`    least squares, minimum classification       largest entry of a gradient
                         error
`RidgeCertificate`       ridge regression (`solvers/ridge`)          relative residual
`LikelihoodCertificate`  Gaussian processes                          derivative by a logarithm
                         (`solvers/likelihood`)
`LogisticCertificate`    kernel logistic regression                  relative duality gap
                         (`solvers/logistic`)
`SpectralCertificate`    kernel PCA (`solvers/spectral`)             relative residual
`MistakesCertificate`    perceptrons                                 whether mistakes are left
`BoostingCertificate`    AdaBoost (`ensemble/boosting`)              nothing: its bound on the error
                                                                     is what it proves
`MarginCertificate`      LPBoost (`ensemble/boosting`)               gap of soft margins
=======================  ==========================================  ===========================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from maxmargin.gram.spectrum import Definiteness, Spectrum, known_definiteness
from maxmargin.solution import Status

ROUNDING = 1e-12  # objectives below this part of that of zero weights are zero
OPTIMAL = 1e-2  # relative gap up to which a converged answer is called optimal

C = TypeVar("C", bound="Certificate")


@dataclass(frozen=True, repr=False, kw_only=True)
class Certificate(ABC):
    """How good an answer is.

    Attributes
    ----------
    status : Status
        ``"converged"``, or why it ended before that.
    tol : float
        What ``violation`` was asked to be.
    parts : tuple of Certificate
        Where there are several machines, the certificate of each; the numbers of the whole are then
        those of the worst.
    """

    status: Status
    tol: float
    parts: tuple[Any, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether what had to become small is at most ``tol``."""
        return self.status == Status.CONVERGED  # a file may have it as a word

    @property
    @abstractmethod
    def violation(self) -> float:
        """What has to become small, in the units of ``tol``."""

    @property
    @abstractmethod
    def claim(self) -> str:
        """What the numbers prove, and what they do not."""

    @abstractmethod
    def numbers(self) -> dict[str, str]:
        """The numbers behind the claim, by what they are."""

    @property
    def badness(self) -> float:
        """By what the worst of several is chosen."""
        return self.violation

    def ended(self: C, status: Status) -> C:
        """Return it with the reason why it is the last one, unless it is good enough."""
        return self if self.converged or self.status is status else replace(self, status=status)

    @classmethod
    def worst(cls: type[C], parts: Sequence[C], **numbers: float) -> C:
        """Certificate of several problems together: that of the worst, but for some numbers."""
        if len(parts) == 1:
            return parts[0]
        status = max({part.status for part in parts}, key=lambda status: status.severity)
        worst = max(parts, key=lambda part: part.badness)
        return replace(worst, status=status, parts=tuple(parts), **numbers)

    def __str__(self) -> str:
        first = f"{self.status}: {self.claim}"
        if self.parts:
            converged = sum(part.converged for part in self.parts)
            first += f" (worst of {len(self.parts)} machines, {converged} converged)"
        return "\n".join([first, *(f"  {name:<16}{text}" for name, text in self.numbers().items())])

    __repr__ = __str__


@dataclass(frozen=True, repr=False, kw_only=True)
class DualCertificate(Certificate):
    """How exact a kernel machine is; every number is recomputed in float64 from the problem.

    (After a stop, where that would take longer than a moment, it rests on the solver's own values.)

    Attributes
    ----------
    primal, dual : float
        Objective of the machine, and the dual objective as maximised.
    gap, relative_gap : float
        ``primal - dual``, and that, with ``rounding``, over the larger of the two in size; infinite
        where a constraint is violated, for the dual is then no bound.
    kkt_violation : float
        Worst violation of the KKT conditions but the constraints, in the units of ``tol``.
    infeasibility : float
        Largest violation of a dual constraint (box or equality).
    status : Status
        ``"converged"``, ``"max_iter"``, ``"time_limit"``, ``"stalled"``, ``"infeasible"``, or for
        nu-SVC and the one-class machine ``"trivial"``: w = 0.
    definiteness : str
        What is known of the Gram matrix, on which the meaning of the gap rests. Where that takes
        eigenvalues, they are computed when it is first asked for, and for printing.
    rounding : float
        How much larger than ``gap`` the true one may be, since float64 rounds kernel values and
        sums.
    parts : tuple of DualCertificate
        For several classes, one certificate per machine. The numbers above are then the worst of
        them: primal, dual and gap of the machine with the largest relative gap.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> model = SVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> print(model.certificate_)
    converged: optimal to a relative gap of ...
      primal          1.5...
      dual            1.5...
      gap             ...
      KKT violation   ... (tol 0.001)
      infeasibility   0
      kernel          positive semidefinite by construction
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    kkt_violation: float
    infeasibility: float
    spectrum: Definiteness | Spectrum = field(compare=False)
    rounding: float = 0.0

    @property
    def violation(self) -> float:
        """Worst violation of the KKT conditions."""
        return self.kkt_violation

    @property
    def badness(self) -> float:
        """The relative gap."""
        return self.relative_gap

    @property
    def definiteness(self) -> Definiteness:
        """What is known of the Gram matrix; see above."""
        return known_definiteness(self.spectrum)

    @property
    def claim(self) -> str:
        """What the numbers prove, and what they do not."""
        if self.status == Status.INFEASIBLE:
            return (
                f"not feasible, a constraint of the dual is violated by {self.infeasibility:.2g}: "
                "primal is the objective at w and b, but dual and gap bound nothing"
            )
        stationary = f"stationary to a KKT violation of {self.kkt_violation:.2g}"
        if self.definiteness == Definiteness.INDEFINITE:
            return (
                f"{stationary}: the kernel matrix is indefinite, so the problem is not convex, "
                "other stationary points may be better, and primal, dual and gap bound nothing"
            )
        lower = f"the best objective may be lower by up to {self.gap + self.rounding:.3g}"
        if not self.converged:
            claim = f"not optimal, {lower}"
        elif self.relative_gap > OPTIMAL:
            claim = f"{stationary}, and no more is proven: {lower}"
            if np.isfinite(self.relative_gap):  # of objectives that are not zero
                claim += f", a relative gap of {self.relative_gap:.2g}"
        else:
            claim = f"optimal to a relative gap of {self.relative_gap:.2g}"
        if self.definiteness == Definiteness.UNKNOWN:
            claim += (
                " if the kernel is positive semidefinite, which a sample of the training points "
                f"did not refute; {stationary} in any case"
            )
        return claim

    def numbers(self) -> dict[str, str]:
        """Both objectives, their gap, violations, and what is known of the kernel."""
        infeasible = self.status == Status.INFEASIBLE
        rounding = "no bound" if infeasible else f"and {self.rounding:.2g} for rounding"
        others = ", but for the constraint below" if infeasible else ""
        return {
            "primal": f"{self.primal:.10g}",
            "dual": f"{self.dual:.10g}",
            "gap": f"{self.gap:.3g} ({rounding})",
            "KKT violation": f"{self.kkt_violation:.3g} (tol {self.tol:g}){others}",
            "infeasibility": f"{self.infeasibility:.2g}",
            "kernel": str(self.definiteness),
        }

    @classmethod
    def worst(cls, parts: Sequence[DualCertificate], **numbers: float) -> DualCertificate:
        """Certificate of several problems taken together."""
        return super().worst(
            parts,
            kkt_violation=max(part.kkt_violation for part in parts),
            infeasibility=max(part.infeasibility for part in parts),
            **numbers,
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class RiskCertificate(Certificate):
    """How exact the weights of a linear machine are: both objectives in float64 from the data.

    Attributes
    ----------
    primal, dual : float
        The objective at the answer, and a proven lower bound on all objectives.
    gap, relative_gap : float
        ``primal - dual``, and that over the larger of the two in size. Where both are zero up to
        the rounding of the sum of losses, that rounding stands for them.
    status : Status
        ``"converged"`` when the relative gap is at most ``tol``; otherwise why it ended.
    problem : str
        What was minimised, where it is not the losses plus a penalty: then both objectives are of
        that problem.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> certificate = LinearSVC(C=0.1).fit(X[:100], y[:100]).certificate_
    >>> certificate.dual <= certificate.primal
    True
    >>> certificate.gap <= certificate.tol * certificate.primal
    True
    >>> print(certificate)  # doctest: +ELLIPSIS
    converged: optimal to a relative gap of ...
      primal          0.3787...
      dual            0.3787...
      gap             ...
      relative gap    ... (tol 0.0001)
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    problem: str = ""

    @property
    def violation(self) -> float:
        """The relative gap."""
        return self.relative_gap

    @property
    def claim(self) -> str:
        """What the numbers prove."""
        of = f"{self.problem}: " if self.problem else ""
        if self.converged:
            return f"{of}optimal to a relative gap of {self.relative_gap:.2g}"
        return f"{of}not optimal, the best objective may be lower by up to {self.gap:.3g}"

    def numbers(self) -> dict[str, str]:
        """Both objectives and their gap."""
        return {
            "primal": f"{self.primal:.10g}",
            "dual": f"{self.dual:.10g}",
            "gap": f"{self.gap:.3g}",
            "relative gap": f"{self.relative_gap:.3g} (tol {self.tol:g})",
        }

    @classmethod
    def unattained(cls, primal: float, status: Status, tol: float) -> RiskCertificate:
        """Judge losses that have no least: classes that can be separated, without a penalty.

        Zero is the bound, and no weights have it, even where float64 knows nothing smaller.
        """
        status = Status.STALLED if status is Status.CONVERGED else status
        return cls(primal=primal, dual=0.0, gap=primal, relative_gap=1.0, status=status, tol=tol)

    @classmethod
    def of(
        cls, primal: float, dual: float, least: float, status: Status, tol: float
    ) -> RiskCertificate:
        """Judge two objectives; ``least`` is the size below which they are rounding.

        No loss and no penalty is negative, so that zero is always a bound.
        """
        primal = np.inf if np.isnan(primal) else primal
        dual = dual if dual > 0 else 0.0
        if primal < dual <= primal + ROUNDING * abs(primal):
            dual = primal  # by rounding; a lower one is a bound, too
        gap = max(primal - dual, 0.0)
        relative = gap and (gap / max(primal, dual, least) if np.isfinite(gap) else np.inf)
        if relative <= tol:
            status = Status.CONVERGED
        elif status is Status.CONVERGED:
            status = Status.STALLED
        return cls(primal=primal, dual=dual, gap=gap, relative_gap=relative, status=status, tol=tol)


@dataclass(frozen=True, repr=False, kw_only=True)
class KernelRiskCertificate(RiskCertificate):
    """The same of a kernel machine, whose bound rests on its Gram matrix.

    Attributes
    ----------
    rounding : float
        How much larger than ``gap`` the true one may be, since float64 rounds kernel values and
        sums.
    spectrum : Definiteness or Spectrum
        What is known of the Gram matrix.
    """

    spectrum: Definiteness | Spectrum = field(compare=False)
    rounding: float = 0.0

    @property
    def definiteness(self) -> Definiteness:
        """What is known of the Gram matrix."""
        return known_definiteness(self.spectrum)

    @property
    def claim(self) -> str:
        """What the gap proves."""
        if self.definiteness == Definiteness.UNKNOWN:
            return (
                f"{super().claim} if the kernel is positive semidefinite, which a sample of the "
                "training points did not refute"
            )
        return super().claim

    def numbers(self) -> dict[str, str]:
        """Both objectives, their gap, and what is known of the kernel."""
        said = super().numbers()
        said["gap"] += f" (and {self.rounding:.2g} for rounding)"
        return {**said, "kernel": str(self.definiteness)}


@dataclass(frozen=True, repr=False, kw_only=True)
class GradientCertificate(Certificate):
    """How near weights are to a stationary point, recomputed in float64 from the data.

    Attributes
    ----------
    objective : float
        The loss at the answer.
    gradient_norm : float
        Largest entry of its gradient, in units in which one is large: the machine's documentation
        says in which.
    solver : str
        The method that was used.
    rank, n_features : int or None
        For least squares, the number of columns that are independent of each other and of the
        intercept, where it is known, and of all.
    convex : bool
        Whether a stationary point is a least one.
    attained : bool
        Whether there is one at all: the loss may only fall as the weights grow, and then a small
        gradient says that longer weights would hardly lower it.

    Examples
    --------
    >>> from maxmargin import LinearRegression
    >>> print(LinearRegression().fit([[0, 0], [1, 2], [2, 4]], [1, 2, 3]).certificate_)
    converged: a least one, to a gradient of ...
      objective       ...
      gradient        ... (tol 1e-06)
      solver          qr
      rank            1 of 2: not unique; this answer has the smallest coefficients
    """

    objective: float
    gradient_norm: float
    solver: str
    rank: int | None = None
    n_features: int | None = None
    convex: bool = True
    attained: bool = True

    @property
    def violation(self) -> float:
        """Largest entry of the gradient."""
        return self.gradient_norm

    @property
    def claim(self) -> str:
        """What the numbers prove."""
        if not self.converged:
            return f"not stationary, the gradient is {self.gradient_norm:.2g}"
        if not self.attained:
            return (
                "there is no least one, the loss falls as long as the weights grow, here to a "
                f"gradient of {self.gradient_norm:.2g}; others may be better"
            )
        what = "a least one" if self.convex else "stationary; others may be better"
        return f"{what}, to a gradient of {self.gradient_norm:.2g}"

    def numbers(self) -> dict[str, str]:
        """Objective, gradient, method and rank."""
        said = {
            "objective": f"{self.objective:.10g}",
            "gradient": f"{self.gradient_norm:.3g} (tol {self.tol:g})",
            "solver": self.solver,
        }
        if self.solver == "nnls":
            said["gradient"] += ", the KKT violation: no coefficient is negative"
        elif self.n_features is not None and self.rank is None:
            said["rank"] = "not known: only solver='qr' tells it"
        elif self.rank is not None and self.rank == self.n_features:
            said["rank"] = f"{self.rank}, full: the answer is unique"
        elif self.rank is not None:
            rest = "not unique; this answer has the smallest coefficients"
            said["rank"] = f"{self.rank} of {self.n_features}: {rest}"
        return said


@dataclass(frozen=True, repr=False, kw_only=True)
class MistakesCertificate(Certificate):
    """What a perceptron has come to.

    Attributes
    ----------
    rows : int
        Rows that it learnt from.
    updates, passes : int
        Steps taken, and passes over the rows.
    mistakes : int
        Rows that the weights of the answer have on the wrong side. With ``variant="averaged"`` it
        is their mean, which may have some though the last weights separate the rows.

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> print(Perceptron().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_)
    separated: every one of 4 training rows is on its right side
      updates         ...
      passes          ...
      mistakes        0 of 4 rows
    """

    rows: int
    updates: int
    passes: int
    mistakes: int

    @property
    def converged(self) -> bool:
        """Whether the rows are separated."""
        return self.status == Status.SEPARATED

    @property
    def violation(self) -> float:
        """Zero where the rows are separated; otherwise at least one is on the wrong side."""
        return 0.0 if self.converged else 1.0

    @property
    def badness(self) -> float:
        """The number of updates; those that are not separated, or whose mean errs, come first."""
        return self.updates + (1e150 if self.mistakes else 0.0) + (0.0 if self.converged else 1e300)

    @property
    def claim(self) -> str:
        """What the passes have proven."""
        if self.converged and self.mistakes:
            return (
                f"the last weights have all {self.rows} training rows on their right side, but "
                f"not their mean, which is the answer: {self.mistakes} are on the wrong one"
            )
        if self.converged:
            return f"every one of {self.rows} training rows is on its right side"
        if self.status == Status.RECURRING:
            return "no hyperplane separates the training rows: the weights come back"
        return "no hyperplane was found that separates the training rows; there may be one"

    def numbers(self) -> dict[str, str]:
        """Updates, passes and mistakes."""
        return {
            "updates": str(self.updates),
            "passes": str(self.passes),
            "mistakes": f"{self.mistakes} of {self.rows} rows",
        }
