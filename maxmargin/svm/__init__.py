"""Support vector estimators with a kernel; the linear ones, too, under scikit-learn's path."""

from maxmargin.aliases import attributes
from maxmargin.svm.nu_svc import NuSVC
from maxmargin.svm.nu_svr import NuSVR
from maxmargin.svm.one_class import OneClassSVM
from maxmargin.svm.svc import SVC
from maxmargin.svm.svr import SVR

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"]
__getattr__, __dir__ = attributes(__name__)
