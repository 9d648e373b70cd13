from sklearn.utils.estimator_checks import parametrize_with_checks
import pytest
from maxmargin.linear.mce import MCEClassifier
@parametrize_with_checks([MCEClassifier(random_state=0), MCEClassifier(solver="gradient_descent", n_restarts=1,random_state=0), MCEClassifier(solver="sgd", n_restarts=1,random_state=0), MCEClassifier(alpha=1e-3,random_state=0)])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
