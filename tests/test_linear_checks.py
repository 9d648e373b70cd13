"""scikit-learn's own checks over the machines of a regularised risk."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC, LinearSVR, LogisticRegression


@parametrize_with_checks(
    [
        LinearSVC(),
        LinearSVC(loss="hinge"),
        LinearSVC(penalty="l1"),
        LinearSVC(solver="dual_descent", random_state=0),
        LinearSVC(intercept_scaling=1.0),
        LinearSVC(lam=0.01),
        LinearSVC(norm_bound=0.5),
        LinearSVR(),
        LinearSVR(loss="squared_epsilon_insensitive"),
        LogisticRegression(),
        LogisticRegression(penalty=None),
        LogisticRegression(solver="lbfgs"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
