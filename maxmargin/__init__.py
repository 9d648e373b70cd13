"""Support vector machines and the large-margin family, exact and certified.

The public names are imported on first use, so that ``import maxmargin`` costs next to nothing:
neither scikit-learn nor Numba, torch or matplotlib is loaded until a name needs it.

Example
-------
>>> from maxmargin import SVC
>>> model = SVC(kernel="linear", C=1.0).fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
>>> model.predict([[2.0, 2.0]])
array([1])
>>> model.certificate_.converged
True
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from maxmargin.aliases import ElsewhereFinder, is_scikit_learns

__version__ = "0.1.0"

_HOME = {
    "SVC": "maxmargin.svm",
    "NuSVC": "maxmargin.svm",
    "SVR": "maxmargin.svm",
    "NuSVR": "maxmargin.svm",
    "OneClassSVM": "maxmargin.svm",
    "LinearSVC": "maxmargin.linear",
    "LinearSVR": "maxmargin.linear",
    "LogisticRegression": "maxmargin.linear",
    "LinearRegression": "maxmargin.linear",
    "LeastSquaresClassifier": "maxmargin.linear",
    "MCEClassifier": "maxmargin.linear",
    "Perceptron": "maxmargin.linear",
    "C_path": "maxmargin.linear",
    "is_separable": "maxmargin.linear",
    "AdaBoostClassifier": "maxmargin.ensemble",
    "BaggingClassifier": "maxmargin.ensemble",
    "BaggingRegressor": "maxmargin.ensemble",
    "DecisionStump": "maxmargin.ensemble",
    "DecisionTreeClassifier": "maxmargin.ensemble",
    "DecisionTreeRegressor": "maxmargin.ensemble",
    "ExtraTreesClassifier": "maxmargin.ensemble",
    "ExtraTreesRegressor": "maxmargin.ensemble",
    "LPBoostClassifier": "maxmargin.ensemble",
    "LogitBoostClassifier": "maxmargin.ensemble",
    "bias_variance": "maxmargin.ensemble",
    "ExplicitFeatures": "maxmargin.feature_maps",
    "GaussianProcessRegressor": "maxmargin.kernel_methods",
    "KernelLogisticRegression": "maxmargin.kernel_methods",
    "KernelPCA": "maxmargin.kernel_methods",
    "KernelRidge": "maxmargin.kernel_methods",
    "KernelRidgeCV": "maxmargin.kernel_methods",
    "Nystroem": "maxmargin.feature_maps",
    "RandomFourier": "maxmargin.feature_maps",
    "Ridge": "maxmargin.kernel_methods",
    "WordStumpBooster": "maxmargin.ensemble",
    "GridSearchCV": "maxmargin.selection",
    "HalvingGridSearchCV": "maxmargin.selection",
    "HalvingRandomSearchCV": "maxmargin.selection",
    "RandomizedSearchCV": "maxmargin.selection",
    "SVCSearchCV": "maxmargin.selection",
    "SVRSearchCV": "maxmargin.selection",
    "Certificate": "maxmargin.certificate",
    "InseparableError": "maxmargin.evaluation",
    "Gram": "maxmargin.gram",
    "compare_solvers": "maxmargin.solvers.compare",
    "Trace": "maxmargin.trace",
    "check_valid": "maxmargin.kernels",
    "explain": "maxmargin.estimators.explanation",
    "read_fasta": "maxmargin.kernels",
}
_SUBMODULES = (
    "bounds",
    "dask",
    "decomposition",
    "duals",
    "ensemble",
    "feature_maps",
    "gaussian_process",
    "kernel_approximation",
    "kernel_methods",
    "kernel_ridge",
    "kernels",
    "linear",
    "linear_model",
    "losses",
    "model_selection",
    "multiclass",
    "plotting",
    "risk",
    "selection",
    "solvers",
    "svm",
    "testing",
    "tree",
)

# not dask: a star would hide the library of this name, and needs it installed
__all__ = [*_HOME, *(name for name in _SUBMODULES if name != "dask"), "__version__"]

if not any(isinstance(finder, ElsewhereFinder) for finder in sys.meta_path):
    sys.meta_path.append(ElsewhereFinder())

if TYPE_CHECKING:
    from maxmargin.certificate import Certificate
    from maxmargin.ensemble import (
        AdaBoostClassifier,
        BaggingClassifier,
        BaggingRegressor,
        DecisionStump,
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        LogitBoostClassifier,
        LPBoostClassifier,
        WordStumpBooster,
        bias_variance,
    )
    from maxmargin.estimators.explanation import explain
    from maxmargin.evaluation import InseparableError
    from maxmargin.feature_maps import ExplicitFeatures, Nystroem, RandomFourier
    from maxmargin.gram import Gram
    from maxmargin.kernel_methods import (
        GaussianProcessRegressor,
        KernelLogisticRegression,
        KernelPCA,
        KernelRidge,
        KernelRidgeCV,
        Ridge,
    )
    from maxmargin.kernels import check_valid, read_fasta
    from maxmargin.linear import (
        C_path,
        LeastSquaresClassifier,
        LinearRegression,
        LinearSVC,
        LinearSVR,
        LogisticRegression,
        MCEClassifier,
        Perceptron,
        is_separable,
    )
    from maxmargin.selection import (
        GridSearchCV,
        HalvingGridSearchCV,
        HalvingRandomSearchCV,
        RandomizedSearchCV,
        SVCSearchCV,
        SVRSearchCV,
    )
    from maxmargin.solvers.compare import compare_solvers
    from maxmargin.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
    from maxmargin.trace import Trace


def __getattr__(name: str) -> object:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"{__name__}.{name}")
    elif is_scikit_learns(name):
        raise ImportError(f"maxmargin has no {name}: import it from sklearn.", name=name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
