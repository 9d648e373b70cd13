"""A graph that rules classes out
==============================

For four classes there are six machines, one for each pair. The graph begins with the first class
against the last and each machine rules one class out: after three questions one is left, where a
vote would have asked all six.
"""

# Lecture 001: the graph of a DAGSVM

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from maxmargin import SVC
from maxmargin.multiclass import DAG
from maxmargin.plotting import plot_decision, plot_scheme

# %%
# The graph.

axes = plt.subplots(1, 2, figsize=(8, 3.7), layout="constrained")[1]
plot_scheme(DAG(4), axes[0]).set_title("3 of 6 machines are asked")

# %%
# At work. Training is that of one against one, and so are nearly all answers: they can differ only
# where a vote has no clear winner.

X, y = make_blobs(120, centers=[[0, 0], [3, 0], [0, 3], [3, 3]], cluster_std=0.9, random_state=0)
y += 1
graph = SVC(multiclass="dag").fit(X, y)
votes = SVC().fit(X, y)
plot_decision(graph, X, y, axes[1], support=False, slack=False)
axes[1].set_title("its regions")
same = (graph.predict(X) == votes.predict(X)).mean()
print(f"{100 * same:.1f} % of the answers are those of the vote")

# %%
# The number of questions grows with the classes, that of a vote with their square.

for classes in (4, 10, 26):
    scheme = DAG(classes)
    print(f"{classes} classes: {scheme.n_asked} of {len(scheme.code)} machines are asked")
plt.show()
