"""What boosting proves of its answer: a bound on the training error, or a gap of margins."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.certificate import Certificate
from maxmargin.solution import Status


@dataclass(frozen=True, repr=False, kw_only=True)
class BoostingCertificate(Certificate):
    """What the rounds of a booster have come to.

    Attributes
    ----------
    rounds : int
        Hypotheses in the vote.
    train_error : float
        Share of the training rows, by weight, that the vote misclassifies.
    bound : float
        What it is at most: the mean loss in units of that of ``u = 0``. For AdaBoost it is the
        product of the normalisers.
    minimum_margin : float or None
        Least margin of a training row, between -1 and 1; None where hypotheses are no votes.

    Examples
    --------
    >>> from maxmargin import AdaBoostClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 1, 0, 0]
    >>> print(AdaBoostClassifier(n_estimators=5).fit(X, y).certificate_)
    completed: all rows right, after 5 rounds that prove an error of at most ...
      training error  0
      bound on it     ...
      least margin    ...
    """

    rounds: int
    train_error: float
    bound: float
    minimum_margin: float | None = None

    @property
    def converged(self) -> bool:
        """Whether the rounds have come to an end of their own."""
        return Status(self.status).finished

    @property
    def violation(self) -> float:
        """The training error."""
        return self.train_error

    @property
    def claim(self) -> str:
        """What the rounds have proven."""
        right = "all rows right" if self.train_error == 0 else f"error {self.train_error:.3g}"
        said = f"{right}, after {self.rounds} round{'s' * (self.rounds != 1)}"
        if self.bound < 1:
            return f"{said} that prove an error of at most {self.bound:.3g}"
        return f"{said}, whose bound on it says nothing"

    def numbers(self) -> dict[str, str]:
        """Error, bound and margin."""
        said = {
            "training error": f"{self.train_error:.4g}",
            "bound on it": f"{self.bound:.4g}",
        }
        if self.minimum_margin is not None:
            said["least margin"] = f"{self.minimum_margin:.4g}"
        return said


@dataclass(frozen=True, repr=False, kw_only=True)
class MarginCertificate(Certificate):
    """How near a vote is to the largest soft margin of all votes; both numbers from the data.

    Attributes
    ----------
    margin : float
        The soft margin of the vote, ``rho - 1/nu sum_i s_i slack_i`` with weights that sum to one.
    bound : float
        The edge of the best hypothesis on the worst distribution: no vote has a larger soft margin.
    gap : float
        ``bound - margin``, in units of margins, which are between -1 and 1.
    exhaustive : bool
        Whether the weak learner finds the best hypothesis there is. If not, the bound holds for
        votes of hypotheses that it can find.
    hypotheses : int
        With a positive weight in the vote.
    """

    margin: float
    bound: float
    exhaustive: bool
    hypotheses: int

    @property
    def gap(self) -> float:
        """How much larger a soft margin may be."""
        return max(self.bound - self.margin, 0.0)

    @property
    def violation(self) -> float:
        """The gap."""
        return self.gap

    @property
    def claim(self) -> str:
        """What the gap proves, and of which votes."""
        of = "all votes" if self.exhaustive else "votes of what the weak learner has found"
        if self.status == Status.TRIVIAL:
            return "no vote is better than a coin: the largest soft margin is zero"
        if self.converged:
            return f"the largest soft margin of {of}, to a gap of {self.gap:.2g}"
        return f"not optimal, the largest soft margin of {of} may be larger by up to {self.gap:.3g}"

    def numbers(self) -> dict[str, str]:
        """Margin, bound, gap, and of how many hypotheses."""
        return {
            "soft margin": f"{self.margin:.10g}",
            "bound": f"{self.bound:.10g}",
            "gap": f"{self.gap:.3g} (tol {self.tol:g})",
            "hypotheses": str(self.hypotheses),
            "weak learner": "exhaustive" if self.exhaustive else "not known to be exhaustive",
        }
