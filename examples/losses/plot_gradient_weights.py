"""Which examples pull: logistic regression and MCE
================================================

Gradient descent moves ``w`` along ``y x`` of each example by the slope of its loss. Logistic
regression pulls at everything on the wrong side with almost full strength; minimum classification
error pulls where the outcome is open, near the boundary.
"""

# Lecture 004: gradient weights of logistic regression and MCE

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import LogisticRegression, MCEClassifier
from maxmargin.plotting import plot_gradient_weights, plot_separators

plot_gradient_weights()

# %%
# So an outlier far on the wrong side turns the line of logistic regression, and not that of MCE,
# which has given it up.

X, y = make_blobs(40, centers=[[-1.5, 0], [1.5, 0]], cluster_std=0.6, random_state=1)
far = np.vstack([X, [[9.0, 4.0], [9.5, 4.0], [9.0, 4.5]]])
labels = np.append(y, [0, 0, 0])
models = {
    "logistic regression": LogisticRegression(C=100).fit(far, labels),
    "MCE": MCEClassifier(alpha=1e-3).fit(far, labels),
}
ax = plot_separators(models, far, labels)
wrong = {name: int((model.predict(X) != y).sum()) for name, model in models.items()}
ax.set_title("Three outliers")
print("wrong among the others:", wrong)
plt.show()
