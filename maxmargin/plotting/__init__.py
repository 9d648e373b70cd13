"""Pictures of fitted machines, probabilities, processes, schemes, searches, losses and traces.

matplotlib is loaded when a picture is drawn, not when this module is imported.
"""

from maxmargin.plotting.geometry.constraint import ConstraintDisplay, plot_constraint
from maxmargin.plotting.geometry.lift import LiftDisplay, plot_lift
from maxmargin.plotting.kernels.process import plot_process
from maxmargin.plotting.kernels.sequences import plot_logo, plot_positions, plot_words
from maxmargin.plotting.machines.decision import DecisionDisplay, plot_decision
from maxmargin.plotting.machines.margins import MarginDisplay, plot_margins
from maxmargin.plotting.machines.reliability import ReliabilityDisplay, plot_reliability
from maxmargin.plotting.machines.scheme import SchemeDisplay, plot_scheme
from maxmargin.plotting.machines.street import StreetDisplay, plot_street
from maxmargin.plotting.machines.streets import StreetsDisplay, plot_street_path
from maxmargin.plotting.machines.surface import SurfaceDisplay, plot_surface
from maxmargin.plotting.machines.tube import TubeDisplay, plot_tube
from maxmargin.plotting.risk.losses import LossDisplay, plot_gradient_weights, plot_losses
from maxmargin.plotting.risk.regularisation import RegularisationDisplay, plot_regularisation
from maxmargin.plotting.risk.search import SearchDisplay, plot_search
from maxmargin.plotting.solvers.trace import plot_trace

__all__ = [
    "ConstraintDisplay",
    "DecisionDisplay",
    "LiftDisplay",
    "LossDisplay",
    "MarginDisplay",
    "RegularisationDisplay",
    "ReliabilityDisplay",
    "SchemeDisplay",
    "SearchDisplay",
    "StreetDisplay",
    "StreetsDisplay",
    "SurfaceDisplay",
    "TubeDisplay",
    "plot_constraint",
    "plot_decision",
    "plot_gradient_weights",
    "plot_lift",
    "plot_logo",
    "plot_losses",
    "plot_margins",
    "plot_positions",
    "plot_process",
    "plot_regularisation",
    "plot_reliability",
    "plot_scheme",
    "plot_search",
    "plot_street",
    "plot_street_path",
    "plot_surface",
    "plot_trace",
    "plot_tube",
    "plot_words",
]
