"""What one solve of a regularised risk leaves to the next, at other costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.risk import RegularisedRisk, RiskEvaluation


@dataclass
class RiskCache:
    """What was found out about a risk, and is of use at costs in proportion to its own.

    A run has one of its own; a path of costs and the search for a norm hand theirs from run to run.

    Attributes
    ----------
    known_values : tuple, optional
        The weights that values were made for last, and the values.
    known_evaluation, part, gram : tuple, optional
        The sum of the costs that it was made for, with the last evaluation of all rows; the part of
        the rows that was drawn last; the curvatures and their matrix that were made last.
    """

    known_values: tuple[np.ndarray, np.ndarray] | None = None
    known_evaluation: tuple[float, RiskEvaluation] | None = None
    part: tuple[float, Any] | None = None
    gram: tuple[float, np.ndarray, np.ndarray] | None = None

    def values(self, risk: RegularisedRisk, theta: np.ndarray) -> np.ndarray:
        """``Z theta``, or what is known of it."""
        if self.known_values is None or not np.array_equal(self.known_values[0], theta):
            self.known_values = theta.copy(), risk.design.values(theta)
        return self.known_values[1]

    def evaluate(self, risk: RegularisedRisk, theta: np.ndarray) -> RiskEvaluation:
        """Read every row once, or not at all where it was done at these weights last."""
        if self.known_evaluation is not None:
            total, known = self.known_evaluation
            if np.array_equal(known.theta, theta):
                return known.times(risk.total_cost / total)
        evaluation = risk.evaluate(theta)
        self.known_evaluation = risk.total_cost, evaluation
        return evaluation
