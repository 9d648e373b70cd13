"""A bound: what it claims, by which theorem, and under which assumptions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """A number that something does not exceed, and why.

    Attributes
    ----------
    value : float
    quantity : str
        What does not exceed it.
    theorem : str
        Whose theorem says so.
    assumptions : tuple of str
        What it rests on and cannot be checked here. What can be checked has been.
    confidence : float or None
        Probability with which the bound holds; None if it holds for certain.
    theta : float or None
        The margin of a margin bound.
    vacuous_from : float
        The value from which the bound says nothing: 1 for an error rate.

    Examples
    --------
    >>> from maxmargin.bounds import Bound
    >>> bound = Bound(0.25, "The leave-one-out error", "Vapnik 1998", ("rows have equal costs",))
    >>> print(bound)
    The leave-one-out error is at most 0.25 (Vapnik 1998), provided that rows have equal costs.
    >>> float(bound), bound.vacuous
    (0.25, False)
    """

    value: float
    quantity: str
    theorem: str
    assumptions: tuple[str, ...] = ()
    confidence: float | None = None
    theta: float | None = None
    vacuous_from: float = 1.0

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing that was not known before."""
        return self.value >= self.vacuous_from

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        text = f"{self.quantity} is at most {self.value:.4g} ({self.theorem})"
        if self.confidence is not None:
            text = f"With probability {self.confidence:g}, {text[0].lower()}{text[1:]}"
        if self.assumptions:
            text += f", provided that {'; '.join(self.assumptions)}"
        return text + (". It says nothing: the bound is vacuous." if self.vacuous else ".")
