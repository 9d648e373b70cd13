"""Several classes from machines for two: schemes, labels and their weights."""

from maxmargin.aliases import attributes
from maxmargin.multiclass.codes import ErrorCorrectingCode
from maxmargin.multiclass.dag import DAG
from maxmargin.multiclass.direct import CrammerSinger, WestonWatkins
from maxmargin.multiclass.labels import (
    class_weights,
    read_class_weights,
    read_labels,
    read_labels_of_stream,
    weights_of_machines,
)
from maxmargin.multiclass.named import NAMED, as_scheme
from maxmargin.multiclass.one_vs_one import OneVsOne
from maxmargin.multiclass.one_vs_rest import OneVsRest
from maxmargin.multiclass.scheme import Scheme
from maxmargin.multiclass.wrapper import SchemeClassifier

__all__ = [
    "DAG",
    "NAMED",
    "CrammerSinger",
    "ErrorCorrectingCode",
    "OneVsOne",
    "OneVsRest",
    "Scheme",
    "SchemeClassifier",
    "WestonWatkins",
    "as_scheme",
    "class_weights",
    "read_class_weights",
    "read_labels",
    "read_labels_of_stream",
    "weights_of_machines",
]
__getattr__, __dir__ = attributes(__name__)
