"""Several classes from machines for two: schemes, labels and their weights."""

from maxmargin.multiclass.labels import (
    class_weights,
    read_class_weights,
    read_labels,
    read_labels_of_stream,
    weights_of_machines,
)
from maxmargin.multiclass.named import as_scheme
from maxmargin.multiclass.one_vs_one import OneVsOne
from maxmargin.multiclass.one_vs_rest import OneVsRest
from maxmargin.multiclass.scheme import Scheme

__all__ = [
    "OneVsOne",
    "OneVsRest",
    "Scheme",
    "as_scheme",
    "class_weights",
    "read_class_weights",
    "read_labels",
    "read_labels_of_stream",
    "weights_of_machines",
]
