"""Pictures of machines, kernels, solvers, losses and searches, and films of what moves in them.

matplotlib is loaded when a picture is drawn, not when this module is imported.
"""

from maxmargin.plotting.animation import Animation, animate
from maxmargin.plotting.ensembles.bias_variance import BiasVarianceDisplay, plot_bias_variance
from maxmargin.plotting.ensembles.boosting import BoostingDisplay, plot_boosting
from maxmargin.plotting.ensembles.k_study import KStudyDisplay, plot_k_study
from maxmargin.plotting.ensembles.learners import LearnersDisplay, plot_learners
from maxmargin.plotting.ensembles.pairs import ErrorPairsDisplay, plot_error_pairs
from maxmargin.plotting.ensembles.rounds import (
    RoundsDisplay,
    RowWeightsDisplay,
    plot_rounds,
    plot_row_weights,
)
from maxmargin.plotting.ensembles.words import BoostedWordsDisplay, plot_boosted_words
from maxmargin.plotting.geometry.constraint import ConstraintDisplay, plot_constraint
from maxmargin.plotting.geometry.lift import LiftDisplay, plot_lift
from maxmargin.plotting.kernels.basis import BasisDisplay, plot_basis
from maxmargin.plotting.kernels.matrix import KernelMatrixDisplay, plot_kernel_matrix
from maxmargin.plotting.kernels.process import ProcessDisplay, plot_process
from maxmargin.plotting.kernels.profile import KernelProfileDisplay, plot_kernel_profile
from maxmargin.plotting.kernels.samples import KernelSamplesDisplay, plot_kernel_samples
from maxmargin.plotting.kernels.sequences import (
    LogoDisplay,
    PositionsDisplay,
    WordsDisplay,
    plot_logo,
    plot_positions,
    plot_words,
)
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
from maxmargin.plotting.solvers.alphas import AlphasDisplay, plot_alphas
from maxmargin.plotting.solvers.box import SMOBoxDisplay, plot_smo_box
from maxmargin.plotting.solvers.convergence import ConvergenceDisplay, plot_trace
from maxmargin.plotting.solvers.moving_street import MovingStreetDisplay
from maxmargin.plotting.solvers.moving_tube import MovingTubeDisplay
from maxmargin.plotting.solvers.perceptron import (
    PerceptronDisplay,
    WeightPathDisplay,
    plot_perceptron,
)
from maxmargin.plotting.solvers.separators import SeparatorsDisplay, plot_separators
from maxmargin.plotting.solvers.snapshots import SnapshotsDisplay, plot_snapshots
from maxmargin.plotting.solvers.staircase import PathDisplay, plot_path

__all__ = [
    "AlphasDisplay",
    "Animation",
    "BasisDisplay",
    "BiasVarianceDisplay",
    "BoostedWordsDisplay",
    "BoostingDisplay",
    "ConstraintDisplay",
    "ConvergenceDisplay",
    "DecisionDisplay",
    "ErrorPairsDisplay",
    "KStudyDisplay",
    "KernelMatrixDisplay",
    "KernelProfileDisplay",
    "KernelSamplesDisplay",
    "LearnersDisplay",
    "LiftDisplay",
    "LogoDisplay",
    "LossDisplay",
    "MarginDisplay",
    "MovingStreetDisplay",
    "MovingTubeDisplay",
    "PathDisplay",
    "PerceptronDisplay",
    "PositionsDisplay",
    "ProcessDisplay",
    "RegularisationDisplay",
    "ReliabilityDisplay",
    "RoundsDisplay",
    "RowWeightsDisplay",
    "SMOBoxDisplay",
    "SchemeDisplay",
    "SearchDisplay",
    "SeparatorsDisplay",
    "SnapshotsDisplay",
    "StreetDisplay",
    "StreetsDisplay",
    "SurfaceDisplay",
    "TubeDisplay",
    "WeightPathDisplay",
    "WordsDisplay",
    "animate",
    "plot_alphas",
    "plot_basis",
    "plot_bias_variance",
    "plot_boosted_words",
    "plot_boosting",
    "plot_constraint",
    "plot_decision",
    "plot_error_pairs",
    "plot_gradient_weights",
    "plot_k_study",
    "plot_kernel_matrix",
    "plot_kernel_profile",
    "plot_kernel_samples",
    "plot_learners",
    "plot_lift",
    "plot_logo",
    "plot_losses",
    "plot_margins",
    "plot_path",
    "plot_perceptron",
    "plot_positions",
    "plot_process",
    "plot_regularisation",
    "plot_reliability",
    "plot_rounds",
    "plot_row_weights",
    "plot_scheme",
    "plot_search",
    "plot_separators",
    "plot_smo_box",
    "plot_snapshots",
    "plot_street",
    "plot_street_path",
    "plot_surface",
    "plot_trace",
    "plot_tube",
    "plot_words",
]
