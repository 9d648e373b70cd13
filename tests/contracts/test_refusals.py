"""Wrong parameters, calls before a fit and other columns are refused by name."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import generate_invalid_param_val, make_constraint

from contracts.common import applies, fit, of_numbers, quietly
from contracts.test_containers import NAMES
from contracts.test_hostile import refusal

METHODS = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "score_samples",
    "transform",
    "score",
)


def wrong_values(constraints):
    """Yield values that no constraint allows: of a type of its own, and beyond each of them."""
    constraints = [make_constraint(constraint) for constraint in constraints]
    yield type("Wrong", (), {"__repr__": lambda self: "Wrong()"})()
    for constraint in constraints:
        try:
            value = generate_invalid_param_val(constraint)
        except NotImplementedError:
            continue
        if not any(other.is_satisfied_by(value) for other in constraints):
            yield value


def test_wrong_parameters_are_refused_by_name(instance):
    sample, estimator = instance.sample(), instance.estimator
    constraints = estimator._parameter_constraints
    assert constraints.keys() >= estimator.get_params(deep=False).keys()
    for name in estimator.get_params(deep=False):
        if constraints[name] == "no_validation":
            continue
        for value in wrong_values(constraints[name]):
            model = instance.make()
            setattr(model, name, value)
            assert f"'{name}'" in str(refusal(model.fit, sample.X, sample.y)), (name, value)


def test_calls_before_a_fit_are_refused_by_name(instance):
    sample, model = instance.sample(), instance.make()
    for method in METHODS:
        if hasattr(model, method):
            given = (sample.X, sample.y) if method == "score" else (sample.new,)
            with pytest.raises(NotFittedError, match=type(model).__name__):
                getattr(model, method)(*given)


@applies(lambda instance: of_numbers(instance) or instance.pairwise)
def test_another_number_of_columns_is_refused_by_name(instance):
    sample = instance.sample()
    model, columns = fit(instance.make(), sample), sample.X.shape[1]
    own = type(getattr(model, "best_estimator_", model)).__name__
    expected = f"features, but {own} is expecting {columns}"
    for new in (sample.new[:, :-1], np.column_stack([sample.new, sample.new[:, 0]])):
        for method in METHODS:
            if hasattr(model, method):
                given = (
                    (new, sample.y[: len(new)])
                    if method == "score" and sample.y is not None
                    else (new,)
                )
                assert expected in str(refusal(getattr(model, method), *given)), method


@applies(of_numbers)
def test_other_names_of_columns_are_refused(instance):
    sample = instance.sample()
    X, new = (pd.DataFrame(rows, columns=NAMES) for rows in (sample.X, sample.new))
    model = quietly(instance.make().fit, X, sample.y)
    assert model.feature_names_in_.tolist() == NAMES
    ask = model.predict if hasattr(model, "predict") else model.transform
    assert "same order" in str(refusal(ask, new[NAMES[::-1]]))
    assert "unseen at fit time" in str(refusal(ask, new.rename(columns={"a": "other"})))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        ask(sample.new)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(new)
