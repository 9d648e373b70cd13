"""The delta rule beside the perceptron
====================================

The delta rule (LMS, Widrow and Hoff) adds ``eta (y - w . x) x`` for every example, right or wrong;
the perceptron adds ``eta y x`` for those that are wrong. So the perceptron ends when all are right,
and the delta rule nears the least squares, which need not be a line that separates.
"""

# Lecture 002: the rule eta (Y - W.X) x

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import LeastSquaresClassifier, Perceptron
from maxmargin.plotting import plot_separators
from maxmargin.solvers import StochasticDescent

sizes, centres = [30, 30, 15], [[-0.6, -0.6], [1.2, 0.6], [5, 4.5]]
X, blob = make_blobs(sizes, centers=centres, cluster_std=0.45, random_state=18)
y = np.minimum(blob, 1)  # the second and the third are one class

# %%
# Some examples of class 1 are far on their right side. To least squares that is an error, too:
# their values are larger than the 1 that is asked for.

eta = 0.001
rule = StochasticDescent(step_size=eta / 2, shuffle=False)  # the gradient of a square has a 2
delta = LeastSquaresClassifier(solver=rule, tol=0.02, max_iter=3000, trace=True)
models = {
    "perceptron": Perceptron(order="shuffled", tol=None, random_state=0).fit(X, y),
    "delta rule": delta.fit(X, y),
    "least squares": LeastSquaresClassifier().fit(X, y),
}
for name, model in models.items():
    print(f"{name}: {(model.predict(X) != y).sum()} of {len(X)} wrong")

# %%
# The way of the delta rule, example by example, beside the mistakes of the perceptron. The trace of
# a long way is thinned out.

figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.6), layout="constrained")
plot_separators(models, X, y, axes[0]).set_ylim(-4.5, 6)
axes[0].legend(loc="lower right", fontsize="small", edgecolor="none")
mistakes = [step.mistakes for step in models["perceptron"].steps(X, y)][1:]
axes[1].step(range(1, 1 + len(mistakes)), mistakes, where="post", label="perceptron")
trace = delta.trace_
f = trace.weights() @ X.T + trace.intercepts()[:, None]
wrong = np.sum(np.where(y == 1, 1, -1) * f <= 0, axis=1)
axes[1].plot(trace.curve("steps")[1:], wrong[1:], "--", label="delta rule")
axes[1].set(xscale="log", xlabel="updates", ylabel="examples wrong")
axes[1].legend(edgecolor="none")
plt.show()
