"""Grid searches for one machine each, with a grid by default."""

from __future__ import annotations

from functools import partial, wraps
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils._param_validation import HasMethods

from maxmargin.backends import cpu
from maxmargin.kernels import Input, Kernel
from maxmargin.selection.evaluation import Evaluation
from maxmargin.selection.plan import last_step, own_prefix
from maxmargin.selection.scoring import Split
from maxmargin.selection.search import Search
from maxmargin.svm import SVC, SVR

_DEFAULT_C = 10.0 ** np.arange(-1, 4)
_DEFAULT_GAMMA = 4.0 ** np.arange(-3, 4)  # times 1 / (n_features * variance)


def _in_either_order(init: Any) -> Any:
    """Let a search be called as ``GridSearchCV`` is, estimator first, or with the grid first.

    The signature, from which scikit-learn takes the names of the parameters, stays as it is.
    """
    names = signature(init)

    @wraps(init)
    def made(self: Any, *args: Any, **options: Any) -> None:
        try:
            if args and isinstance(args[0], dict | list):
                if "param_grid" in options:
                    raise TypeError("got two values for param_grid")
                args, options = args[1:], {"param_grid": args[0], **options}
            given = names.bind(self, *args, **options)
        except TypeError as error:
            name = type(self).__name__
            raise TypeError(
                f"{name}(estimator, param_grid, ...) or {name}(param_grid, ...): {error}. All "
                "other parameters go by their names."
            ) from None
        init(*given.args, **given.kwargs)

    return made


class MachineSearch(Search):
    """Base of the searches for one machine; see :class:`SVCSearchCV`."""

    _machine: type
    _parameter_constraints: dict = {
        **Search._parameter_constraints,
        "estimator": [HasMethods(["fit"]), None],
        "param_grid": [dict, list, None],
    }

    @_in_either_order
    def __init__(
        self,
        estimator: Any = None,
        param_grid: Any = None,
        *,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        prune_margin: float | None = None,
        time_limit: float | None = None,
    ) -> None:
        self._keep_parameters(locals())

    def _searched(self) -> Any:
        return self._machine() if self.estimator is None else self.estimator

    def _run(self, evaluation: Evaluation, splits: list[Split]) -> None:
        estimator = evaluation.estimator
        if not isinstance(last_step(estimator), self._machine):
            name = self._machine.__name__
            raise TypeError(
                f"{type(self).__name__} searches for an {name} of maxmargin or a Pipeline that "
                f"ends in one; got {estimator!r}. For other estimators use GridSearchCV, of "
                "maxmargin or scikit-learn."
            )
        self.param_grid_ = self.param_grid
        if self.param_grid is None:
            default = partial(_default_grid, estimator)
            manners = evaluation.manners
            self.param_grid_ = evaluation.place.asked(default, manners.X, manners.y)
        evaluation.score(list(ParameterGrid(self.param_grid_)), splits)


def _default_grid(estimator: Any, X: Any, y: Any) -> dict[str, list[float]]:
    """Return C by factors of 10 and, for a kernel that has one, gamma by factors of 4."""
    machine = last_step(estimator)
    prefix = own_prefix(estimator)
    grid = {f"{prefix}C": _DEFAULT_C.tolist()}
    kernel = machine._validated_kernel()
    if kernel.input is Input.VECTORS and "gamma" in kernel.get_params():
        if prefix and len(estimator) > 1:
            X = clone(estimator[:-1]).fit_transform(X, y)
        X, _ = clone(machine)._validated(X, y, kernel)
        unit = 1.0 / (X.shape[1] * (cpu.variance(X) or 1.0))
        inside = "kernel__" if isinstance(machine.kernel, Kernel) else ""
        grid[f"{prefix}{inside}gamma"] = (unit * _DEFAULT_GAMMA).tolist()
    return grid


class SVCSearchCV(MachineSearch):
    """Exhaustive search over the parameters of an :class:`~maxmargin.SVC`, by cross-validation.

    It is :class:`~maxmargin.selection.GridSearchCV` for this machine, with a grid by default.

    Parameters
    ----------
    estimator : SVC or Pipeline that ends in one, optional
        What to search for; by default ``SVC()``. May be left out: a grid may come first.
    param_grid : dict or list of dict, optional
        Names of parameters and the values to try. By default C from 0.1 to 1000 by factors of 10
        and, if the kernel has a gamma, this from 1/64 to 64 times ``1 / (n_features * X.var())`` by
        factors of 4, with X as the pipeline's transformers leave it.
    cv : int, splitter or iterable, default=5
    scoring, refit, n_jobs, verbose, error_score, return_train_score, prune_margin, time_limit
        As for :class:`~maxmargin.selection.GridSearchCV`.

    Attributes
    ----------
    param_grid_ : dict or list of dict
        The grid that was searched.
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, sharing_, n_pruned_
    scorer_, n_splits_, refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As of :class:`~maxmargin.selection.GridSearchCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from maxmargin import SVC, SVCSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCSearchCV({"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1]}).fit(X, y)
    >>> search.best_params_, round(float(search.best_score_), 3)
    ({'C': 1, 'gamma': 0.1}, 0.98)
    >>> search.best_estimator_.certificate_.converged
    True
    >>> scaled = make_pipeline(StandardScaler(), SVC())
    >>> search = SVCSearchCV(scaled, {"svc__C": [0.1, 1, 10]}).fit(X, y)
    >>> search.cv_results_["mean_test_score"].round(3)
    array([0.92 , 0.967, 0.973])
    """

    _machine = SVC


class SVRSearchCV(MachineSearch):
    """Exhaustive search over the parameters of an :class:`~maxmargin.SVR`, by cross-validation.

    Everything is as for :class:`SVCSearchCV`, with targets in place of labels; the path is one of C
    for each ``epsilon``.

    Parameters
    ----------
    estimator : SVR or Pipeline that ends in one, optional
        What to search for; by default ``SVR()``.
    param_grid, cv, scoring, refit, n_jobs, verbose, error_score, return_train_score
    prune_margin, time_limit
        As for :class:`SVCSearchCV`.

    Attributes
    ----------
    param_grid_, cv_results_, best_estimator_, best_score_, best_params_, best_index_, sharing_
    n_pruned_, scorer_, n_splits_, refit_time_, multimetric_, n_features_in_, feature_names_in_
        As of :class:`SVCSearchCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVRSearchCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> grid = {"C": [0.1, 1, 10], "epsilon": [0.01, 0.1], "gamma": [0.1, 1]}
    >>> search = SVRSearchCV(grid, scoring="neg_mean_absolute_error")
    >>> search.fit(X, np.sin(X[:, 0])).best_params_
    {'C': 10, 'epsilon': 0.01, 'gamma': 1}
    """

    _machine = SVR
