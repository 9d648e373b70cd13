"""Above the tube and below it
===========================

In a support vector regression an error up to ``epsilon`` costs nothing. An example above the tube
has slack ``xi``, one below it ``xi-hat``; each has a multiplier of its own, ``a`` and ``a-hat``,
and no example can have both.
"""

# Lecture 001: slack above and below the tube; an example of SVR

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR
from maxmargin.plotting import TubeDisplay

random = np.random.default_rng(8)
x = np.sort(random.uniform(0, 6, 36))
t = np.sin(x) + 0.25 * random.normal(size=36)
X = x[:, None]
model = SVR(C=3.0, epsilon=0.25, gamma=0.5, tol=1e-6).fit(X, t)
display = TubeDisplay.from_estimator(model, X, t)

# %%
# The largest slack on either side, with its name.

ax = display.ax_
for slack, name, side in ((display.xi, r"$\xi$", 1), (display.xi_hat, r"$\hat\xi$", -1)):
    most = slack.argmax()
    middle = t[most] - side * slack[most] / 2
    ax.annotate(name, (x[most], middle), (10, 0), textcoords="offset points", size=15, va="center")

# %%
# The conditions of optimality: an example with slack has a multiplier at ``C``; one on the edge of
# the tube has less; and one inside has none, so that the curve would be the same without it.

slack = display.xi + display.xi_hat
a = np.zeros(len(x))
a[model.support_] = model.dual_coef_[0]  # a - a-hat
for name, which in (
    ("inside", (np.abs(a) == 0) & (slack == 0)),
    ("on the edge", (np.abs(a) > 0) & (slack == 0)),
    ("outside", slack > 0),
):
    size = np.abs(a[which])
    print(f"{name:12} {which.sum():2} examples, |a - a-hat| {size.min():.3g} to {size.max():.3g}")
plt.show()
