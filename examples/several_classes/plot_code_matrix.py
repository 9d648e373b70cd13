"""A code that forgives wrong machines
===================================

Each machine parts the classes into two halves, and each class is a word of answers. With five
classes there are fifteen ways to part them. Any two words then differ in eight answers: three
machines may be wrong, and the nearest word is still the right one.
"""

# Lecture 001: the code matrix of K = 5 classes and n = 15 machines

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.multiclass import ErrorCorrectingCode
from maxmargin.plotting import plot_scheme

# %%
# A row is the word of a class, a column what one machine is to tell apart.

scheme = ErrorCorrectingCode(5)
figure, axes = plt.subplots(2, 1, figsize=(6, 5), layout="constrained", height_ratios=[1.3, 1])
plot_scheme(scheme, axes[0])

# %%
# Turn over some of the answers, at random, and look for the nearest word: up to three errors do no
# harm at all, and a fourth one mostly not.

words = scheme.code.T
random = np.random.default_rng(0)
share = []
for errors in range(9):
    right = 0
    for _ in range(500):
        k = random.integers(5)
        heard = words[k].copy()
        heard[random.choice(15, errors, replace=False)] *= -1
        distance = (words != heard).sum(axis=1)
        right += np.flatnonzero(distance == distance.min()).tolist() == [k]
    share.append(right / 500)
axes[1].bar(range(9), 100 * np.array(share), color=["#0072b2"] * 4 + ["#e69f00"] * 5)
axes[1].set(xlabel="wrong machines out of 15", ylabel="class found, in %")
axes[1].set_xticks(range(9))
plt.show()
