"""Several classes from machines for two."""

from maxmargin.multiclass.class_weight import class_weights, weights_of_machines
from maxmargin.multiclass.one_vs_one import OneVsOne

__all__ = ["OneVsOne", "class_weights", "weights_of_machines"]
