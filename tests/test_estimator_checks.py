"""scikit-learn's own checks over every machine.

No check is expected to fail that does not fail for scikit-learn's estimator of the same name, and
of those fewer: with gamma given as a number, a weight of two is a row written twice, to all digits.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.kernels import RBF, Linear, Precomputed

WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
SCALE = 'gamma="scale" is a property of X and does not see weights, as in scikit-learn'
NU = "the check's data or weights make nu=0.5 infeasible, as in scikit-learn"
SIGN = "the check predicts on the boundary itself, where the sign is rounding's"


def expected_failures(estimator):
    expected = {}
    if estimator.kernel == "rbf" and estimator.gamma == "scale":
        expected = dict.fromkeys(WEIGHTS, SCALE)
    if isinstance(estimator, OneClassSVM):
        expected = dict.fromkeys(WEIGHTS, SIGN)
    if isinstance(estimator, NuSVC) and estimator.fit_intercept:
        expected = dict.fromkeys((*WEIGHTS, "check_class_weight_classifiers"), NU)
    return expected


@parametrize_with_checks(
    [
        SVC(),
        NuSVC(),
        SVR(),
        NuSVR(),
        OneClassSVM(),
        SVC(kernel="precomputed"),
        SVR(kernel=2 * Precomputed()),
        SVC(kernel=RBF(gamma=0.5) + Linear()),
        SVC(probability=True, random_state=0),
        SVC(probability="consistent", random_state=0, multiclass="ovr"),
        SVC(lam=0.01),
        SVC(norm_bound=1.0, tol=1e-9),
        SVC(fit_intercept=False),
        SVC(gamma=0.5, multiclass="ovr"),
        SVR(fit_intercept=False),
        SVC(gamma=0.5),
        SVR(gamma=0.5),
        NuSVR(gamma=0.5, tol=1e-10),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
