"""Words that boosting finds
=========================

Short notices about the weather, the harvest and prices, made of phrases. Each round of boosting
takes one word: where it is, it speaks for some topics and against others, and where it is not, it
says less. The bound on the training error is the product of all Z, and falls in every round.
"""

# Lecture 000: text categorisation by boosting

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import WordStumpBooster
from maxmargin.plotting import plot_boosted_words

# %%
# A notice has one topic or two: a phrase of each, among words that say nothing. Now and then a
# phrase of another topic gets in.

PHRASES = {
    "weather": ["heavy rain in the north", "dry and warm days", "a storm from the west", "snow"],
    "harvest": ["wheat and corn are late", "a dry field of corn", "farmers bring in wheat"],
    "prices": ["corn prices rise", "the market for wheat falls", "dollars a tonne", "oil is dear"],
}
FILLERS = ["on monday", "said a report", "in the east", "for the week", "it was said", "today"]
random = np.random.default_rng(0)


def notice():
    """Return a text and its topics."""
    topics = sorted(random.choice(list(PHRASES), size=random.integers(1, 3), replace=False))
    said = [random.choice(PHRASES[topic]) for topic in topics]
    if random.random() < 0.1:
        said.append(random.choice(PHRASES[random.choice(list(PHRASES))]))
    said += list(random.choice(FILLERS, size=3))
    return " ".join(random.permutation(said)), topics


documents, topics = zip(*(notice() for _ in range(500)), strict=True)
new, new_topics = zip(*(notice() for _ in range(500)), strict=True)

# %%
# Words and pairs of neighbours; several labels for a document.

model = WordStumpBooster(60, ngram_range=(1, 2)).fit(documents, topics)
print(model.words_)
print(f"all topics right, of new notices: {100 * model.score(new, new_topics):.0f} %")
print("of heavy rain and corn prices:", *model.rank(["heavy rain, and corn prices rise"])[0])

# %%
# The first ten words, and the bound beside the training error and that of new notices.

figure = plt.figure(figsize=(8.0, 5.6), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1.5, 1.0])
plot_boosted_words(model, above.subplots(1, 2), rounds=10)
ax = below.subplots()
truth = np.array([[topic in own for topic in model.classes_] for own in new_topics])
errors = [((f > 0) != truth).mean() for f in model.staged_decision_function(new)]
rounds = np.arange(1, len(model.words_) + 1)
ax.plot(rounds, model.bound_, "--", color="0.5", label="product of Z, a bound")
ax.plot(rounds, model.hamming_loss_, label="training error")
ax.plot(rounds, errors, label="error on new notices")
ax.set(xlabel="rounds", ylabel="share of wrong topics", ylim=(0, None))
ax.legend()
plt.show()
