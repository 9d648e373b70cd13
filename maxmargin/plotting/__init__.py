"""Pictures of fitted machines, probabilities, processes, schemes, searches, losses and traces.

matplotlib is loaded when a picture is drawn, not when this module is imported.
"""

from maxmargin.plotting.decision import plot_decision
from maxmargin.plotting.losses import plot_gradient_weights, plot_losses
from maxmargin.plotting.margins import plot_margins
from maxmargin.plotting.process import plot_process
from maxmargin.plotting.reliability import plot_reliability
from maxmargin.plotting.scheme import plot_scheme
from maxmargin.plotting.search import plot_search
from maxmargin.plotting.sequences import plot_logo, plot_positions, plot_words
from maxmargin.plotting.trace import plot_trace
from maxmargin.plotting.tube import plot_tube

__all__ = [
    "plot_decision",
    "plot_gradient_weights",
    "plot_logo",
    "plot_losses",
    "plot_margins",
    "plot_positions",
    "plot_process",
    "plot_reliability",
    "plot_scheme",
    "plot_search",
    "plot_trace",
    "plot_tube",
    "plot_words",
]
