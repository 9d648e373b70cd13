"""How random a tree should be
===========================

A node of an extremely randomised tree tries one random test for each of K columns. With K = 1 the
tests know nothing of the classes, with all columns they know much. One tree is worse than the mean
of many, whatever K is. That a small K is best, above all with wrong labels, is for the data to say:
here it is not.
"""

# Lecture 000: extremely randomised trees of several K, without and with noise

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from maxmargin.ensemble import k_study
from maxmargin.plotting import plot_k_study

X, y = make_classification(
    600, 12, n_informative=5, n_redundant=0, n_clusters_per_class=2, class_sep=1.0, random_state=2
)

# %%
# Above, the error on test rows, whose labels are right. Below, the squared bias of the shares of
# the classes, and the variance of one tree and of the mean.

study = k_study(X, y, K=[1, 2, 3, 5, 8, 12], noise=[0.0, 0.4], n_estimators=30, random_state=0)
print(study)
figure, axes = plt.subplots(2, 2, figsize=(7.4, 5.4), layout="constrained")
plot_k_study(study, axes)
plt.show()
