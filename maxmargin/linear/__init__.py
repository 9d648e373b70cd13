"""Linear machines: one idea of the lecture in each file."""

from maxmargin.linear.linear_svc import LinearSVC
from maxmargin.linear.linear_svr import LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]
