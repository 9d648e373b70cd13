"""Pictures of fitted machines, probabilities, processes, schemes, searches, losses and traces.

matplotlib is loaded when a picture is drawn, not when this module is imported.
"""

from maxmargin.plotting.animation import Animation, animate
from maxmargin.plotting.kernels.basis import BasisDisplay, plot_basis
from maxmargin.plotting.kernels.matrix import KernelMatrixDisplay, plot_kernel_matrix
from maxmargin.plotting.kernels.process import plot_process
from maxmargin.plotting.kernels.profile import KernelProfileDisplay, plot_kernel_profile
from maxmargin.plotting.kernels.samples import KernelSamplesDisplay, plot_kernel_samples
from maxmargin.plotting.kernels.sequences import plot_logo, plot_positions, plot_words
from maxmargin.plotting.machines.decision import plot_decision
from maxmargin.plotting.machines.margins import plot_margins
from maxmargin.plotting.machines.reliability import plot_reliability
from maxmargin.plotting.machines.scheme import plot_scheme
from maxmargin.plotting.machines.tube import plot_tube
from maxmargin.plotting.risk.losses import plot_gradient_weights, plot_losses
from maxmargin.plotting.risk.search import plot_search
from maxmargin.plotting.solvers.alphas import AlphasDisplay, plot_alphas
from maxmargin.plotting.solvers.box import SMOBoxDisplay, plot_smo_box
from maxmargin.plotting.solvers.convergence import ConvergenceDisplay, plot_trace
from maxmargin.plotting.solvers.perceptron import (
    PerceptronDisplay,
    WeightPathDisplay,
    plot_perceptron,
)
from maxmargin.plotting.solvers.separators import SeparatorsDisplay, plot_separators
from maxmargin.plotting.solvers.snapshots import SnapshotsDisplay, plot_snapshots
from maxmargin.plotting.solvers.staircase import PathDisplay, plot_path
from maxmargin.plotting.solvers.street import StreetDisplay

__all__ = [
    "AlphasDisplay",
    "Animation",
    "BasisDisplay",
    "ConvergenceDisplay",
    "KernelMatrixDisplay",
    "KernelProfileDisplay",
    "KernelSamplesDisplay",
    "PathDisplay",
    "PerceptronDisplay",
    "SMOBoxDisplay",
    "SeparatorsDisplay",
    "SnapshotsDisplay",
    "StreetDisplay",
    "WeightPathDisplay",
    "animate",
    "plot_alphas",
    "plot_basis",
    "plot_decision",
    "plot_gradient_weights",
    "plot_kernel_matrix",
    "plot_kernel_profile",
    "plot_kernel_samples",
    "plot_logo",
    "plot_losses",
    "plot_margins",
    "plot_path",
    "plot_perceptron",
    "plot_positions",
    "plot_process",
    "plot_reliability",
    "plot_scheme",
    "plot_search",
    "plot_separators",
    "plot_smo_box",
    "plot_snapshots",
    "plot_trace",
    "plot_tube",
    "plot_words",
]
