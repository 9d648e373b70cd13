"""Several solvers, one gap
========================

The duality gap bounds what is still to be won, whoever does the work. A step of one method costs
two rows of the Gram matrix, of another the whole of it: against seconds the order can be another.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, compare_solvers
from maxmargin.plotting import plot_trace

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)[:200]
names = ["smo", "platt", "projected_gradient", "frank_wolfe"]
comparison = compare_solvers(
    SVC(C=1.0), X, y[:200], solvers=names, tol=1e-4, time_limit=1.0, memory=False
)
print(comparison)

# %%
# Their traces are in the comparison.

figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.6), layout="constrained", sharey=True)
for ax, against, first in zip(axes, ("steps", "seconds"), (1, 1e-3), strict=True):
    plot_trace(comparison, "gap", against=against, ax=ax)
    ax.set(xscale="log", xlim=(first, None))
axes[0].legend(loc="lower left", fontsize="small")
axes[1].get_legend().remove()
plt.show()
