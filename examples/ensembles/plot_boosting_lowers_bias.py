"""Boosting lowers bias
====================

A stump has much bias and little variance. Boosting makes one classifier of many of them, and round
by round the bias falls. The variance rises at first, and then hardly changes.
"""

# Lecture 000: bias and variance against rounds

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from maxmargin import AdaBoostClassifier, BaggingClassifier, DecisionTreeClassifier, bias_variance
from maxmargin.plotting import plot_learners

X, y = make_classification(
    400, 10, n_informative=6, n_clusters_per_class=3, class_sep=1.2, flip_y=0.03, random_state=1
)

# %%
# The same replicates for all, so that the curves can be compared: boosted stumps at the left, and
# bagged stumps, whose bias stays, at the right.

rounds = (1, 3, 10, 30, 100)
boosted = {
    T: bias_variance(AdaBoostClassifier(n_estimators=T), X, y, 40, random_state=0) for T in rounds
}
stump = DecisionTreeClassifier(max_depth=1)
bagged = {
    T: bias_variance(BaggingClassifier(stump, T), X, y, 40, random_state=0) for T in rounds[:4]
}
figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.2), layout="constrained", sharey=True)
plot_learners(boosted, axes[0], xlabel="rounds")
axes[0].set_title("boosted stumps")
plot_learners(bagged, axes[1], xlabel="members")
axes[1].set_title("bagged stumps")
print(boosted[1], boosted[100], sep="\n\n")
plt.show()
