"""The kernel machines: classification, regression, outlier detection."""

from maxmargin.svm.nu_svc import NuSVC
from maxmargin.svm.nu_svr import NuSVR
from maxmargin.svm.one_class import OneClassSVM
from maxmargin.svm.svc import SVC
from maxmargin.svm.svr import SVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
