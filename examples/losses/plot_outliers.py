"""Outliers, and the price of ignoring them
========================================

Far on the wrong side, an example pulls at logistic regression with all its might, and at a machine
with minimum classification error (MCE) hardly at all. So a few outliers turn the first line and not
the second; but the first problem is convex and solved in no time, and the second is not.
"""

# Lecture 004: logistic regression is prone to outliers but faster than MCE

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import LogisticRegression, MCEClassifier
from maxmargin.plotting import plot_gradient_weights, plot_separators

clean, labels = make_blobs(120, centers=[[-1.2, 0], [1.2, 0]], cluster_std=0.55, random_state=1)
far = np.column_stack([np.linspace(6, 8, 8), np.linspace(-5, -6, 8)])
X, y = np.vstack([clean, far]), np.append(labels, np.zeros(8, dtype=int))

# %%
# Eight examples of class 0 are far among those of class 1.

models, times = {}, {}
for name, model in {
    "logistic": LogisticRegression(penalty=None),
    "MCE": MCEClassifier(alpha=1e-3, random_state=0),
}.items():
    model.fit(X, y)  # once, so that nothing is compiled below
    start = perf_counter()
    models[name] = model.fit(X, y)
    times[name] = 1000 * (perf_counter() - start)
    wrong = (model.predict(clean) != labels).sum()
    print(f"{name}: {wrong} of {len(clean)} other examples wrong, {times[name]:.1f} ms")

# %%
# On the right, what is behind it: how much an example weighs in the gradient.

axes = plt.subplots(1, 2, figsize=(10.4, 4.2), layout="constrained")[1]
plot_separators(models, X, y, axes[0])
errors = [f"{name} {(m.predict(clean) != labels).sum()}" for name, m in models.items()]
axes[0].set_title(f"wrong, outliers apart: {', '.join(errors)}")
plot_gradient_weights(axes[1])
plt.show()
