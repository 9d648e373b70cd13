"""What the pictures ask of a model and its data, and how they look into both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted


def last_step(model: Any) -> Any:
    """Return the machine itself: the fitted model, or that of a fitted pipeline or search."""
    check_is_fitted(model)
    while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
        model = model[-1] if isinstance(model, Pipeline) else model.best_estimator_
    return model


def transformed(model: Any, X: Any) -> Any:
    """Return X as the machine of a pipeline or of a search sees it."""
    while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
        if not isinstance(model, Pipeline):
            model = model.best_estimator_
            continue
        X = model[:-1].transform(X) if len(model) > 1 else X
        model = model[-1]
    return X


def check_drawable(
    model: Any, n_features: int, asked_by: str, instead: str, chosen: bool = False
) -> None:
    """Refuse a model on another number of features than the picture shows.

    ``asked_by`` is the function that draws, ``instead`` says what to do with another model. Where
    the features to show were chosen, more of them will do.
    """
    if getattr(getattr(last_step(model), "kernel_", None), "pairwise", False):
        raise ValueError(
            f"{asked_by} evaluates the machine between its training points, and one with a "
            "precomputed kernel knows no points: fit it with a kernel object or function instead."
        )
    found = getattr(model, "n_features_in_", "no vectors")
    if found == 1 < n_features:
        instead = "A second column gives it a plane; plot_margins draws classifiers on one, too."
        chosen = False
    if found != n_features and not (chosen and found != "no vectors"):
        raise ValueError(
            f"{asked_by} draws machines on {n_features} feature{'s' * (n_features > 1)}, and this "
            f"one was fitted on {found}. {instead}"
        )


def check_training_rows(model: Any, X: Any, y: Any, asked_by: str) -> None:
    """Refuse data among which the support vectors cannot be found by their row numbers."""
    check_consistent_length(X, y)
    machine = last_step(model)
    n, n_fit = _num_samples(X), machine.shape_fit_[0]
    if n != n_fit or not _holds_support_vectors(model, X):
        raise ValueError(
            f"{asked_by} marks the support vectors among the training points, so X and y must be "
            f"those of fit, in the same order; got {n} {'other ' if n == n_fit else ''}rows where "
            f"fit had {n_fit}. Other points can be drawn on the axes that it returns."
        )


def _holds_support_vectors(model: Any, X: Any) -> bool:
    machine = last_step(model)
    X = transformed(model, X)
    rows, known = dense(_safe_indexing(X, machine.support_)), dense(machine.support_vectors_)
    return rows.shape == known.shape and np.allclose(rows, known)


def dense(X: Any) -> np.ndarray:
    """Return X as a dense float array of shape (n_samples, n_features)."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def in_container_of(X: Any, values: np.ndarray) -> Any:
    """Return values of shape (n, n_features) as a data frame like X, or as they are."""
    if hasattr(X, "columns"):
        return type(X)(dict(zip(X.columns, values.T, strict=True)))
    return values


def column_name(X: Any, j: int) -> str:
    """Return the name of a column, for an axis."""
    return str(X.columns[j]) if hasattr(X, "columns") else f"feature {j}"


def two_columns(X: Any, features: Sequence[Any] | None) -> list[int]:
    """Return the numbers of the two columns that are shown, given by number or by name."""
    if features is None:
        return [0, 1]
    names = [str(name) for name in getattr(X, "columns", ())]
    width = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    numbers = [names.index(f) if f in names else f for f in features]
    known = all(k in range(width) for k in numbers)
    if len(numbers) != 2 or not known or len(set(numbers)) < 2:
        raise ValueError(
            f"features are the numbers of two columns below {width}"
            f"{' or their names' if names else ''}, such as (0, 1); got {features!r}."
        )
    return [int(k) for k in numbers]


def class_names(classes: np.ndarray, given: Sequence[str] | None) -> list[str]:
    """Return what to call the classes: what they are, or as many other names."""
    names = classes.tolist() if given is None else list(given)
    if len(names) != len(classes):
        raise ValueError(
            f"class_names has {len(names)} names for the {len(classes)} classes {classes.tolist()}."
        )
    # a legend leaves out what begins with an underscore
    return [f" {name}" if str(name).startswith("_") else str(name) for name in names]


def class_index(classes: Any, y: Any) -> np.ndarray:
    """Return the number of each label among the classes of a model, or refuse those it lacks."""
    classes, y = np.asarray(classes), np.asarray(y)
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y has labels {unknown.tolist()} that the model was not fitted on; "
            f"its classes are {classes.tolist()}."
        )
    return np.searchsorted(classes, y)


def tolerance(machine: Any) -> float:
    """Return what the machine calls equal; some have no ``tol``, or one of None."""
    return float(getattr(machine, "tol", None) or 0.0)


def has_street(machine: Any) -> bool:
    """Whether f = -1 and f = +1 mean something to a classifier: whether its loss is a hinge."""
    loss = getattr(machine, "loss", "")
    if getattr(getattr(machine, "scheme_", None), "direct", False):
        return False
    known = hasattr(machine, "slack_") or hasattr(machine, "n_support_")  # scikit-learn's SVC, too
    return known or getattr(loss, "name", loss) in ("hinge", "squared_hinge")


def refuse_softmax(machine: Any, asked_by: str) -> None:
    """Refuse a machine whose functions of several classes mean something by differences only."""
    apart = getattr(getattr(machine, "certificate_", None), "parts", ())
    apart = apart or hasattr(machine, "estimators_")  # as scikit-learn's OneVsRestClassifier
    if len(machine.classes_) > 2 and hasattr(machine, "predict_proba") and not apart:
        raise ValueError(
            f"{asked_by} counts f(x) < 0 as the wrong side, and the functions that this "
            f"{type(machine).__name__} has of {len(machine.classes_)} classes mean something by "
            "their differences only. Fit it with multiclass='ovr', or on two classes."
        )


@dataclass(frozen=True)
class Task:
    """One of the machines for two of which a classifier is made: its number, name and code.

    ``sides`` has for each class +1, -1 or, where the machine does not see it, 0.
    """

    number: int
    name: str
    sides: np.ndarray

    @classmethod
    def of(cls, model: Any, number: int | None, asked_by: str) -> Task:
        """Choose one of a fitted classifier's machines; where it is made of one, that."""
        machine = last_step(model)
        classes = getattr(machine, "classes_", ())
        if len(classes) < 2 or not hasattr(model, "decision_function"):
            raise ValueError(
                f"{asked_by} draws the values of classifiers with a decision_function; got "
                f"{type(machine).__name__} with {len(classes)} classes."
            )
        scheme = getattr(machine, "scheme_", None)
        code = [[-1, 1]] if len(classes) == 2 else 2 * np.eye(len(classes), dtype=int) - 1
        if len(classes) > 2 and scheme is not None:
            if scheme.direct:
                raise ValueError(
                    f"{asked_by} draws machines for two, and {scheme!r} finds the functions of all "
                    f"{len(classes)} classes in one problem. For its regions, see plot_decision."
                )
            code = scheme.code
        elif len(classes) > 2 and hasattr(machine, "decision_function_shape"):
            raise ValueError(
                f"{asked_by} draws the value of one machine, and the decision_function of this "
                f"{type(machine).__name__} counts votes. maxmargin.SVC has the machines' values."
            )
        names = [
            " against ".join(" or ".join(map(str, classes[row == s])) for s in (1, -1))
            for row in np.asarray(code)
        ]
        if number is None and len(names) > 1:
            raise ValueError(
                f"{asked_by} draws a machine for two, and this {type(machine).__name__} with "
                f"{len(classes)} classes has {len(names)} of them: choose one with task=, such as "
                f"task=0 ({names[0]}). For all classes, see plot_decision or scikit-learn's "
                "ConfusionMatrixDisplay."
            )
        if number is not None and not 0 <= number < len(names):
            raise ValueError(f"task must be from 0 to {len(names) - 1}, got {number!r}.")
        number = number or 0
        return cls(number, names[number] if len(names) > 1 else "", np.asarray(code)[number])

    def values(self, model: Any, X: Any) -> np.ndarray:
        """Return the machine's values at the rows of X, positive for its positive side."""
        return machine_values(model, X)[:, self.number]


def machine_values(model: Any, X: Any) -> np.ndarray:
    """Return the value of each of a classifier's machines, shape (n_samples, n_machines)."""
    machine = last_step(model)
    X = transformed(model, X)
    for name in ("_machine_values", "_values", "decision_function"):
        if hasattr(machine, name):
            values = np.asarray(getattr(machine, name)(X))
            return values.reshape(len(values), -1)
    raise TypeError(f"{type(machine).__name__} has no decision_function.")
