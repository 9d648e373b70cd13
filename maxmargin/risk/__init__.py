"""Problems of the linear machines: losses on the data plus a penalty on the weights."""

from maxmargin.risk.base import LinearSolution, Risk
from maxmargin.risk.direct import DirectRisk
from maxmargin.risk.penalty import L1, L2, NO_PENALTY, Penalty, cost_per_weight, refuse_two_forms
from maxmargin.risk.regularised import Losses, RegularisedRisk, RiskEvaluation
from maxmargin.risk.softmax import SoftmaxRisk

__all__ = [
    "L1",
    "L2",
    "NO_PENALTY",
    "DirectRisk",
    "LinearSolution",
    "Losses",
    "Penalty",
    "RegularisedRisk",
    "Risk",
    "RiskEvaluation",
    "SoftmaxRisk",
    "cost_per_weight",
    "refuse_two_forms",
]
