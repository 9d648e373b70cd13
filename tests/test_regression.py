from sklearn.utils.estimator_checks import parametrize_with_checks
import pytest
from maxmargin.linear.regression import LeastSquaresClassifier, LinearRegression
@parametrize_with_checks([LinearRegression(), LeastSquaresClassifier(), LinearRegression(solver="conjugate_gradient", tol=1e-10), LinearRegression(solver="sgd", random_state=0), LinearRegression(solver="gradient_descent", tol=1e-10, max_iter=10000), LinearRegression(fit_intercept=False)])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
