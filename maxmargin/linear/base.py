"""What the linear machines share: data as scikit-learn checks them, weights, classes, values."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.base import Estimator
from maxmargin.estimators.callbacks import scikit_learn_listeners
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.multiclass import OneVsRest, class_weights, read_class_weights, read_labels
from maxmargin.progress import Monitor, watched
from maxmargin.solution import Status
from maxmargin.solvers import (
    LBFGS,
    ConjugateGradients,
    Factorisation,
    GradientDescent,
    Method,
    NonnegativeLeastSquares,
    StochasticDescent,
)

_STEPPED: dict[str, Callable[[float | None], Method]] = {
    "gradient_descent": GradientDescent,
    "sgd": StochasticDescent,
}
_METHODS: dict[str, Callable[[], Method]] = {
    "lbfgs": LBFGS,
    "qr": Factorisation,
    "nnls": NonnegativeLeastSquares,
    "conjugate_gradient": ConjugateGradients,
}


def with_weight(X: Any, weight: np.ndarray, *arrays: np.ndarray) -> tuple:
    """Rows of X, of their weights and of other arrays, without those of weight zero."""
    used = np.flatnonzero(weight)
    if len(used) == len(weight):
        return X, weight, *arrays
    return X[used], weight[used], *(array[used] for array in arrays)


class LinearMachine(Estimator):
    """A machine ``f(x) = w . x + b`` with ``coef_`` and ``intercept_``.

    Data may be dense or CSR, float32 or float64, and stay as they are.
    """

    coef_: np.ndarray
    intercept_: Any
    time_limit: float | None
    callback: Any
    verbose: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _watched(self, problems: int = 1) -> AbstractContextManager[Monitor]:
        """Have someone between a fit and its solvers, for so many problems."""
        return watched(
            self.time_limit, self.callback, self.verbose, problems, scikit_learn_listeners(self)
        )

    def _values(self, X: Any) -> np.ndarray:
        """``X @ coef_.T + intercept_`` at new points."""
        check_is_fitted(self)
        X = self._validated_points(X)
        return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_


class DescentMachine(LinearMachine):
    """A machine that ends where the gradient of a mean of losses is small."""

    solver: str | Method
    tol: float | None
    max_iter: int
    step_size: float | None
    random_state: Any
    default_tol: ClassVar[float]
    default_tol_sgd: ClassVar[float] = 1e-3

    _parameter_constraints: dict = {
        "fit_intercept": ["boolean"],
        "tol": [POSITIVE, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "step_size": [POSITIVE, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "time_limit": [POSITIVE, None],
        "callback": [callable, None],
    }

    def _tol(self) -> float:
        by_rows = self.solver == "sgd" or isinstance(self.solver, StochasticDescent)
        return self.tol or (self.default_tol_sgd if by_rows else self.default_tol)

    def _method(self, solver: str | Method) -> Method:
        """Method that was asked for, with its step size."""
        if self.step_size is not None and solver not in ("gradient_descent", "sgd"):
            raise ValueError(
                f"step_size={self.step_size} was given, but solver={self.solver!r} has no step "
                "size: use solver='gradient_descent' or 'sgd', or leave step_size=None."
            )
        if isinstance(solver, Method):
            return solver
        if solver in ("gradient_descent", "sgd"):
            return _STEPPED[solver](self.step_size)
        return _METHODS[solver]()

    def _advice(self, status: Status) -> str:
        """What it means that a fit has ended so, and what to do about it."""
        return status.advice_for("descent").format(
            **{**self.get_params(deep=False), "tol": self._tol()}
        )


class LinearClassifier(ClassifierMixin, SparseCoefMixin, LinearMachine):
    """A linear machine for two classes, or one for each of several."""

    classes_: np.ndarray
    class_weight: Any

    def _classes_of(self, y: Any) -> np.ndarray:
        """Set ``classes_``; returns the index of each row's class. Labels may be of any type."""
        self.classes_, index = read_labels(y)
        return index

    def _weights_and_factors(
        self, sample_weight: Any, X: Any, index: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the rows, and the factor of each class; refuses classes without weight."""
        weight = self._validated_weight(sample_weight, X)
        return weight, read_class_weights(self.class_weight, self.classes_, index, weight)

    def _weights_of_stream(self, sample_weight: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same for rows of a stream, whose other labels nobody has seen."""
        weight = self._validated_weight(sample_weight, X)
        return weight, class_weights(self.class_weight, self.classes_, None, weight)

    def _weights_with_classes(self, sample_weight: Any, X: Any, index: np.ndarray) -> np.ndarray:
        """Weights of the rows, each times that of its class."""
        weight, factors = self._weights_and_factors(sample_weight, X, index)
        return weight * factors[index]

    @property
    def _scheme(self) -> OneVsRest:
        """One function for two classes, else one for each, and the largest decides."""
        return OneVsRest(len(self.classes_))

    def _signs(self, index: np.ndarray) -> list[np.ndarray]:
        """Labels -1 and +1 of each machine."""
        return self._scheme.signs(index)

    def _dense_coef(self) -> np.ndarray:
        """``coef_`` to go on from, also after ``sparsify``."""
        coef: Any = self.coef_
        return coef.toarray() if sp.issparse(coef) else coef

    def decision_function(self, X: Any) -> np.ndarray:
        """Values of the machine, or of one for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_classes)
            With two classes a positive value means ``classes_[1]``.
        """
        values = self._values(X)
        return values.ravel() if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        values = self._values(X)
        return self.classes_[self._scheme.decode(values)]


class LinearRegressor(RegressorMixin, LinearMachine):
    """A linear machine for numbers."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the machine's value at each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : array of shape (n_samples,) or, of several outputs, (n_samples, n_outputs)
        """
        return self._values(X)
