"""The logistic function
=====================

``sigma(y) = 1 / (1 + exp(-y))`` turns a value of any size into a probability. It is what the
posterior probability of one of two classes looks like as soon as the logarithm of their odds is
linear.
"""

# Lecture 001: the logistic function

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from scipy.stats import norm

from maxmargin import LogisticRegression

# %%
# On its left it is what is missing to 1 on its right, ``sigma(-y) = 1 - sigma(y)``: probabilities
# of the two classes add up to 1. Its slope, ``sigma (1 - sigma)``, is largest in the middle.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")
value = np.linspace(-6, 6, 401)
left.plot(value, expit(value), linewidth=2, label=r"$\sigma(y)$")
left.plot(value, expit(-value), "--", linewidth=2, label=r"$\sigma(-y) = 1 - \sigma(y)$")
left.plot(value, expit(value) * expit(-value), ":", linewidth=2, label="slope")
left.set(xlabel="y", title=r"$\sigma(y) = 1\,/\,(1 + e^{-y})$")
left.legend(loc="center left", fontsize="small", edgecolor="none")

# %%
# Two normal distributions of the same width: Bayes' rule gives ``sigma(w x + b)`` exactly. Logistic
# regression, which is told the classes only, finds nearly the same curve.

random = np.random.default_rng(0)
x = np.concatenate([random.normal(-1, 1.2, 150), random.normal(1.5, 1.2, 150)])
y = np.repeat([0, 1], 150)
model = LogisticRegression(penalty=None).fit(x[:, None], y)
places = np.linspace(-5, 5.5, 300)
first, second = norm.pdf(places, -1, 1.2), norm.pdf(places, 1.5, 1.2)
right.plot(places, second / (first + second), color="black", linewidth=1, label="Bayes' rule")
right.plot(places, model.predict_proba(places[:, None])[:, 1], "C2--", linewidth=2, label="learnt")
for k, height in ((0, -0.05), (1, 1.05)):
    right.plot(x[y == k], np.full(150, height), "|", color=f"C{k}", label=f"class {k}")
right.set(xlabel="x", title="p(class 1 | x)")
right.legend(loc="center left", edgecolor="none")
plt.show()
