"""A perceptron, mistake by mistake
================================

For an example on the wrong side the rule adds ``y x`` to the weights; for one on the right side it
does nothing. On data that some line separates this comes to an end.
"""

# Lecture 000: perceptron learning on separable data; examples used (bold) and not used (faint)

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from maxmargin import Perceptron
from maxmargin.plotting import PerceptronDisplay, plot_snapshots

X, y = make_blobs(60, centers=[[-1.5, -1], [1.5, 1.5]], cluster_std=0.9, random_state=10)
model = Perceptron(order="cyclic", tol=None).fit(X, y)
print(f"{model.status_} after {model.n_updates_} mistakes in {model.n_iter_} passes")

# %%
# Only examples that were once on the wrong side have a part in ``w``, the sum of ``alpha y x``:
# they are bold. The others could be taken out, and the line would be the same.

walk = PerceptronDisplay.from_estimator(model, X, y)
alpha = abs(model.dual_coef_[0])
used = alpha > 0
print(f"{used.sum()} of {len(X)} examples make w: alpha = {alpha[used]}")

# %%
# On the way there the line is not always a better one than before: an update mends one example and
# may spoil others.

axes = plt.subplots(2, 2, figsize=(6.4, 5.6), layout="constrained")[1]
plot_snapshots(walk, [1, 2, 5, -1], axes)  # sphinx_gallery_thumbnail_number = 2
plt.show()
