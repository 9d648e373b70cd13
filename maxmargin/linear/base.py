"""What the linear machines share: data as scikit-learn checks them, weights, classes, values."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.base import WATCHED, Estimator
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.linear.export import linear_of
from maxmargin.multiclass import (
    NAMED,
    OneVsRest,
    Scheme,
    as_scheme,
    class_weights,
    read_class_weights,
    read_labels,
    read_labels_of_stream,
    weights_of_machines,
)
from maxmargin.multiclass.labels import ROWS
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
from maxmargin.solvers.steps import SCHEDULES, UNITS, StepSize, in_data_units

_STEPPED: dict[str, Callable[[StepSize | None, str], Method]] = {
    "gradient_descent": GradientDescent,
    "sgd": StochasticDescent,
}
_METHODS: dict[str, Callable[[], Method]] = {
    "lbfgs": LBFGS,
    "qr": Factorisation,
    "nnls": NonnegativeLeastSquares,
    "conjugate_gradient": ConjugateGradients,
}


_ROUNDING = 1e-9  # by which a loss may seem to grow
MULTICLASS = [StrOptions(set(NAMED)), Scheme, callable]  # constraints on parameters
STEPS: dict[str, list] = {
    "step_size": [POSITIVE, StrOptions(set(SCHEDULES)), callable, None],
    "units": [StrOptions(set(UNITS))],
}


def stepped(solver: str, step_size: StepSize | None, units: str) -> Method:
    """Gradient descent or stochastic gradient descent, by name."""
    return _STEPPED[solver](step_size, units)


def refuse_steps(machine: Any) -> None:
    """Refuse a step size, or units of steps, where the solver takes none from the machine."""
    for name, default in (("step_size", None), ("units", "auto")):
        given = getattr(machine, name)
        if given != default and not (
            isinstance(machine.solver, str) and machine.solver in _STEPPED
        ):
            raise ValueError(
                f"{name}={given!r} was given, but solver={machine.solver!r} has no step size: use "
                f"solver='gradient_descent' or 'sgd', or leave {name}={default!r}."
            )


def growth(machine: Any) -> str:
    """Say that gradient descent by steps of a given size was not always downhill, if so."""
    solver = machine.solver
    stated = solver if isinstance(solver, GradientDescent) else machine
    if solver == "gradient_descent" or isinstance(solver, GradientDescent):
        curves = getattr(machine, "loss_curve_", [])
        curves = [curves] if np.ndim(curves[:1]) == 1 else curves
        grown = sum(int(np.sum(np.diff(c) > _ROUNDING * c[:-1])) for c in map(np.array, curves))
        ended = machine.certificate_.status in (Status.MAX_ITER, Status.STALLED)
        if ended and grown and stated.step_size is not None:
            return (
                f" The loss has grown at {grown} steps (see loss_curve_), so that "
                f"step_size={stated.step_size} is too large."
            )
    return ""


def solver_names(*names: str) -> list:
    """Constraint on the parameter ``solver``: a name or a method."""
    return [StrOptions({"auto", *names}), Method]


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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def to_sklearn(self) -> Any:
        """Return scikit-learn's estimator with the same function, fitted, for tools that need it.

        Returns
        -------
        model : estimator of scikit-learn
            It predicts the same.
        """
        return linear_of(self)

    def _values(self, X: Any) -> np.ndarray:
        """``X @ coef_.T + intercept_`` at new points."""
        check_is_fitted(self)
        X = self._validated_points(X)
        return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_


def in_dtype_of(X: Any, values: np.ndarray) -> np.ndarray:
    """Return float64 answers as float32 where X is float32, as scikit-learn does."""
    return values.astype(np.float32) if getattr(X, "dtype", None) == np.float32 else values


class DescentMachine(LinearMachine):
    """A machine that ends where the gradient of a mean of losses is small."""

    solver: str | Method
    tol: float | None
    max_iter: int
    step_size: StepSize | None
    units: str
    random_state: Any
    default_tol: ClassVar[float]
    default_tol_sgd: ClassVar[float] = 1e-3

    _parameter_constraints: dict = {
        "fit_intercept": ["boolean"],
        "tol": [POSITIVE, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        **STEPS,
        "random_state": ["random_state"],
        **WATCHED,
    }

    def _tol(self) -> float:
        by_rows = self.solver == "sgd" or isinstance(self.solver, StochasticDescent)
        return self.tol or (self.default_tol_sgd if by_rows else self.default_tol)

    def _method(self, solver: str | Method) -> Method:
        """Method that was asked for, with its step size."""
        refuse_steps(self)
        if isinstance(solver, Method):
            return solver
        if solver in _STEPPED:
            return stepped(solver, self.step_size, self.units)
        return _METHODS[solver]()

    def _in_data_units(self, method: Method) -> bool:
        """Whether a method steps in X's own units, and not on standardised columns."""
        if isinstance(method, GradientDescent | StochasticDescent):
            return in_data_units(method.units, method.step_size)
        return False

    def _advice(self, status: Status) -> str:
        """What it means that a fit has ended so, and what to do about it."""
        return status.advice_for("descent").format(
            **{**self.get_params(deep=False), "tol": self._tol()}
        )


class LinearClassifier(ClassifierMixin, SparseCoefMixin, LinearMachine):
    """Linear machines for two classes, as many as a scheme asks for, or one for all classes.

    The rows of ``coef_`` are those of ``scheme_.code``. All machines are one matrix product, so
    that a scheme that could ask few of them (a DAG) has all their values at once.
    """

    classes_: np.ndarray
    scheme_: Scheme
    class_weight: Any
    class_weight_on: str = ROWS
    multiclass: Any = "ovr"

    def _classes_of(self, y: Any) -> np.ndarray:
        """Set ``classes_`` and ``scheme_``; returns the index of each row's class."""
        self.classes_, index = read_labels(y)
        self.scheme_ = self._scheme_for(len(self.classes_))
        return index

    def _classes_of_stream(self, y: Any, classes: Any) -> np.ndarray:
        """Set them at the first call, with all labels that there may be; returns the same."""
        index = read_labels_of_stream(self, y, classes)
        scheme = self._scheme_for(len(self.classes_))
        if getattr(self, "scheme_", scheme) != scheme:
            raise ValueError(
                f"The machines so far are those of {self.scheme_!r}, and multiclass now says "
                f"{scheme!r}: clone the machine to begin anew."
            )
        self.scheme_ = scheme
        return index

    def _scheme_for(self, n_classes: int) -> Scheme:
        """Return the scheme that was asked for.

        Of two classes it is one function, positive for the second; zero is the first one's, as in
        scikit-learn.
        """
        scheme = as_scheme(self._asked, n_classes)
        self._refuse_scheme(scheme)
        return scheme if n_classes > 2 else OneVsRest(2)

    @property
    def _asked(self) -> Any:
        """What ``multiclass`` says."""
        return self.multiclass

    def _refuse_scheme(self, scheme: Scheme) -> None:
        """Refuse schemes that are problems of their own, unless a machine has a form for them."""
        if scheme.direct:
            raise ValueError(
                f"{scheme!r} is one problem for all classes, with a hinge of its own, and not made "
                f"of machines for two such as {type(self).__name__}: give it to LinearSVC or SVC, "
                "as multiclass=..."
            )

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

    def _weights_of_machines(
        self, index: np.ndarray, weight: np.ndarray, factors: np.ndarray
    ) -> list[np.ndarray]:
        """Weights of the rows in each machine; zero where one does not see a row."""
        return weights_of_machines(weight, factors, index, self.class_weight_on, self.scheme_)

    def _weights_with_classes(self, sample_weight: Any, X: Any, index: np.ndarray) -> np.ndarray:
        """Weights of the rows, each times that of its class."""
        weight, factors = self._weights_and_factors(sample_weight, X, index)
        return weight * factors[index]

    def _signs(self, index: np.ndarray) -> list[np.ndarray]:
        """Labels -1 and +1 of each machine, 0 where it does not see a row."""
        return self.scheme_.signs(index)

    def _dense_coef(self) -> np.ndarray:
        """``coef_`` to go on from, also after ``sparsify``."""
        coef: Any = self.coef_
        return coef.toarray() if sp.issparse(coef) else coef

    def decision_function(self, X: Any) -> np.ndarray:
        """Value of the machine, or one for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_classes)
            With two classes a positive value means ``classes_[1]``. With several, it is the value
            of the class's own machine, or what ``scheme_`` makes of the machines' values (of pairs,
            votes plus confidence, as in ``SVC``), and the largest is that of the class predicted;
            but where pairs tie (``scheme_.ambiguous``), confidence may say otherwise, and
            ``predict`` takes the first class with most votes.
        """
        values = self._values(X)
        return values.ravel() if values.shape[1] == 1 else self.scheme_.scores(values)

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
        return self.classes_[self.scheme_.decode(values)]


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
        return in_dtype_of(X, self._values(X))
