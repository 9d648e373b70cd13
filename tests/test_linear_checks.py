"""scikit-learn's own checks over the machines of a regularised risk.

A weight of two is a row written twice to the digits of the solver, so ``tol`` is small here.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC, LinearSVR, LogisticRegression

WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
SHUFFLED = "rows come in random order: one of weight two is not two rows of weight one"
SEPARABLE = "the check's classes can be separated: there is no answer without a penalty"


def expected_failures(estimator):
    if estimator.solver in ("dual_descent", "sgd"):
        return dict.fromkeys(WEIGHTS, SHUFFLED)
    if getattr(estimator, "penalty", "l2") is None:
        return dict.fromkeys(WEIGHTS, SEPARABLE)
    return {}


@parametrize_with_checks(
    [
        LinearSVC(tol=1e-10),
        LinearSVC(loss="hinge", tol=1e-10, lam=0.01),  # lam: with partial_fit
        LinearSVC(penalty="l1", tol=1e-10),
        LinearSVC(solver="dual_descent", random_state=0),
        LinearSVC(intercept_scaling=1.0, tol=1e-10),
        LinearSVC(loss="hinge", norm_bound=0.3, tol=1e-10),
        LinearSVC(multiclass="ovo", tol=1e-10, lam=0.01),
        LinearSVC(multiclass="crammer_singer", tol=1e-10, max_iter=-1, random_state=0),
        LinearSVR(tol=1e-10, lam=0.01),
        LinearSVR(loss="squared_epsilon_insensitive", tol=1e-10),
        LogisticRegression(tol=1e-12, lam=0.01),
        LogisticRegression(penalty=None),
        LogisticRegression(multiclass="ecoc", tol=1e-12),
        LogisticRegression(solver="gradient_descent", tol=1e-10, max_iter=1000),
        LogisticRegression(solver="sgd", penalty=None, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
