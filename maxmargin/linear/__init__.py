"""Linear machines: one idea of the lecture in each file."""

from maxmargin.linear.linear_svc import LinearSVC
from maxmargin.linear.linear_svr import LinearSVR
from maxmargin.linear.logistic import LogisticRegression
from maxmargin.linear.mce import MCEClassifier
from maxmargin.linear.perceptron import Perceptron
from maxmargin.linear.regression import LeastSquaresClassifier, LinearRegression
from maxmargin.linear.risk_machine import C_path
from maxmargin.linear.separability import Separability, is_separable

__all__ = [
    "C_path",
    "LeastSquaresClassifier",
    "LinearRegression",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "MCEClassifier",
    "Perceptron",
    "Separability",
    "is_separable",
]
