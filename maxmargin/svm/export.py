"""Convert fitted kernel estimators to scikit-learn's, for tools that take only its classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from maxmargin.kernels import RBF, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.linear.export import class_like
from maxmargin.multiclass import OneVsOne

_NAMES: dict[type, str] = {
    Linear: "linear",
    RBF: "rbf",
    Polynomial: "poly",
    Sigmoid: "sigmoid",
    Precomputed: "precomputed",
}
_SAME = (
    *("C", "nu", "epsilon", "tol", "shrinking", "class_weight", "random_state"),
    *("decision_function_shape", "break_ties"),
)
_OF_FIT = (
    *("n_features_in_", "feature_names_in_", "classes_", "offset_", "shape_fit_"),
    *("fit_status_", "class_weight_"),
)


def svm_of(model: Any) -> Any:
    """Return a fitted support vector machine of scikit-learn with the same function.

    Probabilities are not exported: ``CalibratedClassifierCV`` makes them of any estimator.

    Raises
    ------
    TypeError
        Where scikit-learn has no estimator of this form: another kernel than LIBSVM's, several
        classes in another way than one against one, features in place of a kernel, several outputs.
    """
    check_is_fitted(model)
    _refuse_other_functions(model)
    kernel = model.kernel_
    cls: Any = class_like(model)
    theirs = cls(kernel=_NAMES[type(kernel)])
    own = model.get_params(deep=False)
    for name in _SAME:
        if name in own and name in theirs.get_params():
            setattr(theirs, name, own[name])
    for name in ("gamma", "degree", "coef0"):
        if hasattr(kernel, name):
            setattr(theirs, name, getattr(kernel, name))
    for name in _OF_FIT:
        if name in vars(model):
            setattr(theirs, name, getattr(model, name))
    dual_coef, two_classes = model.dual_coef_, len(getattr(model, "classes_", ())) == 2
    sparse = sp.issparse(model.support_vectors_)
    vectors = model.support_vectors_.astype(np.float64)
    dual_coef = dual_coef.toarray() if sp.issparse(dual_coef) else dual_coef
    if sparse:  # LIBSVM reads the values only, so zeros have to be among them
        rows, columns = dual_coef.shape
        places = np.tile(np.arange(columns), rows), np.arange(rows + 1) * columns
        dual_coef = sp.csr_matrix((dual_coef.ravel(), *places), shape=dual_coef.shape)
    sign = -1.0 if two_classes else 1.0  # of what LIBSVM is given, as in scikit-learn's own fit
    counts = model.n_support_ if hasattr(model, "classes_") else np.repeat(model.n_support_, 2)
    vars(theirs).update(
        support_=model.support_,
        support_vectors_=vectors if sparse else np.ascontiguousarray(vectors),
        dual_coef_=dual_coef,
        intercept_=model.intercept_,
        _sparse=sparse,
        _gamma=float(getattr(kernel, "gamma", 0.0)),
        _n_support=counts.astype(np.int32),
        _dual_coef_=sign * dual_coef,
        _intercept_=sign * model.intercept_,
        _probA=np.empty(0),
        _probB=np.empty(0),
        _num_iter=np.atleast_1d(model.n_iter_).astype(np.int32),
        _effective_probability=False,
    )
    return theirs


def _refuse_other_functions(model: Any) -> None:
    """Raise an error for models that LIBSVM cannot represent."""
    why = ""
    if model.feature_map_ is not None:
        why = "it has features in place of support vectors"
    elif type(model.kernel_) not in _NAMES or getattr(model.kernel_, "degree", 0) % 1:
        names = ", ".join(_NAMES.values())
        why = f"its kernel {model.kernel_!r} is none of LIBSVM's: {names} (of whole degrees)"
    elif len(getattr(model, "classes_", ())) > 2 and type(model.scheme_) is not OneVsOne:
        why = f"it has several classes by multiclass={model.multiclass!r}, and LIBSVM 'ovo'"
    elif not hasattr(model, "classes_") and len(model.dual_coef_.shape) > 1:
        outputs = model.dual_coef_.shape[0]
        why = f"it has {outputs} outputs" if outputs > 1 else ""
    if why:
        name = type(model).__name__
        raise TypeError(f"scikit-learn has no class for this {name}, since {why}.")
