"""Pictures of fitted machines (the street, the margins, the tube) and of searches for them.

matplotlib is loaded when a picture is drawn, not when this module is imported.
"""

from maxmargin.plotting.decision import plot_decision
from maxmargin.plotting.margins import plot_margins
from maxmargin.plotting.search import plot_search
from maxmargin.plotting.tube import plot_tube

__all__ = ["plot_decision", "plot_margins", "plot_search", "plot_tube"]
