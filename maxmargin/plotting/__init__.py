"""Pictures of fitted machines, probabilities, processes, schemes, searches, losses and traces.

matplotlib is loaded when a picture is drawn, not when this module is imported.
"""

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
from maxmargin.plotting.solvers.trace import plot_trace

__all__ = [
    "BasisDisplay",
    "KernelMatrixDisplay",
    "KernelProfileDisplay",
    "KernelSamplesDisplay",
    "plot_basis",
    "plot_decision",
    "plot_gradient_weights",
    "plot_kernel_matrix",
    "plot_kernel_profile",
    "plot_kernel_samples",
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
