"""The logistic function
=====================

``sigma(y) = 1 / (1 + exp(-y))`` turns a value of any size into a probability. It is what the
posterior probability of one of two classes looks like as soon as the logarithm of their odds is
linear, and it is a smooth version of a perceptron's step.
"""

# Lecture 001: the logistic function

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from scipy.stats import norm

from maxmargin import LogisticRegression

# %%
# On its left it is what is missing to 1 on its right: ``sigma(-y) = 1 - sigma(y)``. A larger weight
# makes it steeper; in the limit it is the step of the perceptron, which says yes or no.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
value = np.linspace(-6, 6, 401)
left.plot(value, np.heaviside(value, 0.5), color="black", linewidth=1, label="step")
for weight, style in ((5, ":"), (1, "-"), (0.4, "--")):
    name = r"$\sigma(y)$" if weight == 1 else rf"$\sigma({weight}\,y)$"
    left.plot(value, expit(weight * value), style, label=name, linewidth=2)
left.set(xlabel="y", ylabel="probability", title=r"$\sigma(y) = 1\,/\,(1 + e^{-y})$")
left.legend(edgecolor="none")

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
