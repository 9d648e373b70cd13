"""Pictures of fitted machines (the street, the margins, the tube), searches, losses and traces.

matplotlib is loaded when a picture is drawn, not when this module is imported.
"""

from maxmargin.plotting.decision import plot_decision
from maxmargin.plotting.gradients import plot_gradient_weights
from maxmargin.plotting.losses import plot_losses
from maxmargin.plotting.margins import plot_margins
from maxmargin.plotting.search import plot_search
from maxmargin.plotting.trace import plot_trace
from maxmargin.plotting.tube import plot_tube

__all__ = [
    "plot_decision",
    "plot_gradient_weights",
    "plot_losses",
    "plot_margins",
    "plot_search",
    "plot_trace",
    "plot_tube",
]
