"""scikit-learn's module paths for the estimators of this package.

Replacing ``sklearn`` by ``maxmargin`` in an import works wherever this package has the class:
``from maxmargin.linear_model import Ridge``. :data:`PATHS` is the one table behind these modules;
a name of scikit-learn's that is not in it raises an ImportError that says where to import it from,
and so does a module of scikit-learn's without a class of this package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from types import ModuleType

PATHS = {
    "decomposition": ("KernelPCA",),
    "ensemble": (
        *("AdaBoostClassifier", "BaggingClassifier", "BaggingRegressor"),
        *("ExtraTreesClassifier", "ExtraTreesRegressor"),
    ),
    "gaussian_process": ("GaussianProcessRegressor",),
    "kernel_approximation": ("Nystroem",),
    "kernel_ridge": ("KernelRidge",),
    "linear_model": ("LinearRegression", "LogisticRegression", "Perceptron", "Ridge"),
    "model_selection": (
        *("GridSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "RandomizedSearchCV"),
    ),
    "multiclass": (),
    "svm": ("SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"),
    "tree": (
        *("DecisionTreeClassifier", "DecisionTreeRegressor"),
        *("export_graphviz", "export_text", "plot_tree"),
    ),
}
_INSTEAD = {  # classes of this package with the function of a class of scikit-learn's
    "OneVsOneClassifier": 'SchemeClassifier(estimator, multiclass="ovo")',
    "OneVsRestClassifier": 'SchemeClassifier(estimator, multiclass="ovr")',
    "OutputCodeClassifier": 'SchemeClassifier(estimator, multiclass="ecoc")',
    "RBFSampler": "maxmargin.RandomFourier",
    "RidgeClassifier": "maxmargin.LeastSquaresClassifier",
    "SGDClassifier": "LinearSVC(lam=alpha / 2) or LogisticRegression(lam=alpha / 2)",
}


class ElsewhereFinder(MetaPathFinder):
    """Import hook that names scikit-learn's module where this package has none of that name.

    It stands last in ``sys.meta_path``, so that it is asked only where an import has failed.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise an error for a module of scikit-learn's; find none."""
        package, _, name = fullname.partition(".")
        if package == __package__ and is_scikit_learns(name):
            raise ModuleNotFoundError(
                f"maxmargin has no {name}: import sklearn.{name}.",
                name=fullname,
            )


def is_scikit_learns(name: str) -> bool:
    """Whether scikit-learn has a public module of this name."""
    return name.isidentifier() and name[0] != "_" and find_spec(f"sklearn.{name}") is not None


def attributes(module: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a module whose path is in :data:`PATHS`."""
    package, _, path = module.partition(".")

    def look_up(name: str) -> object:
        if name in PATHS[path]:
            return getattr(import_module(package), name)
        if not name.startswith("_") and hasattr(_scikit_learn(path), name):
            instead = f", or use {_INSTEAD[name]} here" if name in _INSTEAD else ""
            # an ImportError, because Python replaces the message of an AttributeError by its own
            raise ImportError(
                f"maxmargin has no {name}: import it from sklearn.{path}{instead}.",
                name=name,
            )
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return look_up, lambda: sorted(sys.modules[module].__all__)


def _scikit_learn(path: str) -> ModuleType:
    if path == "model_selection":  # its halving searches are there only after this import
        import_module("sklearn.experimental.enable_halving_search_cv")
    return import_module(f"sklearn.{path}")
