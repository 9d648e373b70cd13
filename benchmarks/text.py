"""Boosted words on Reuters-21578 (ModApte): quality beside other methods, time, memory, growth.

    python benchmarks/text.py --data FOLDER [--only ten,speed] [--repeats 3]

*ten*, *ninety*: the ten largest categories, and all 90 that have a training and a test document;
9,603 training and 3,299 test documents, those without any topic among them. Boosted words see the
presence of words and pairs of neighbours that are in two documents or more; the linear machine sees
tf-idf (logarithms of the counts) of single words, C = 1, and naive Bayes their counts or presence,
one against the rest. Nothing is tuned on the test part. Precision, recall and F1 micro-averaged at
threshold zero (probability one half), F1 macro-averaged over categories, the break-even point of
each category (precision where as many documents are chosen as there are) weighted by its test
documents, and the one-error over documents with a category.

*labelled*: the 90 categories again, on the 7,770 and 3,019 documents that have one of them, as Yang
and Liu have it.

*categories*: documents with one topic only, of the 3 to 40 largest: error against their number, as
in the lecture's figure (AP, its other data set, is not at hand).

*speed*: rounds on the ten categories, one thread and two; *ablation*: the same without kept sums,
without bounds, and without either; *growth*: with rounds, documents, labels and words. CPU seconds
of all threads, the least of the repeats; reading the text is not in them, and stands beside them.
Results go to ``results/text.json`` and ``results/text.md``; *pictures* draws words and errors.
"""

from __future__ import annotations

import argparse
import tracemalloc
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from data import add_option, reuters_documents
from harness import CPU, RESULTS, WALL, Records, chosen, environment, in_turns, in_words, table
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import f1_score, precision_recall_fscore_support
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import normalize

from maxmargin import LinearSVC, WordStumpBooster
from maxmargin.ensemble.words import rounds as rounds_of
from maxmargin.ensemble.words.ranking import ranking_scores
from maxmargin.plotting import plot_boosted_words

PAIRS = {"ngram_range": (1, 2), "min_df": 2}
LABELLED = ["500 rounds", "each category", "LinearSVC", "counts"]
LARGEST = (3, 5, 10, 15, 20, 30, 40)
PUBLISHED = [
    ("Joachims, ECML 1998", "90, break-even", "SVM 86.0 to 86.4, k-NN 82.3, naive Bayes 72.0"),
    ("Dumais et al., CIKM 1998", "10, break-even", "SVM 92.0, trees 88.4, naive Bayes 81.5"),
    ("Dumais et al., CIKM 1998", "118, break-even", "SVM 87.0, naive Bayes 75.2"),
    (
        "Yang and Liu, SIGIR 1999",
        "90, F1 micro / macro",
        "SVM 86.0 / 52.5, k-NN 85.7 / 52.4, naive Bayes 79.6 / 38.9",
    ),
]


class Reuters:
    """Both parts, as the methods read them."""

    def __init__(self, folder: Path) -> None:
        self.train, self.test, self.categories = reuters_documents(folder)

    def labels(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Indicator matrices of the largest categories."""
        names = self.categories[:count]
        train, test = (
            np.array([[name in topics for name in names] for topics in part.topics])
            for part in (self.train, self.test)
        )
        return train, test

    @lru_cache(maxsize=4)  # noqa: B019
    def words(self, kind: str) -> tuple[Any, Any, float]:
        """Both parts as presence, tf-idf or counts, and the CPU seconds to read the first."""
        vectorizer = {
            "pairs": lambda: CountVectorizer(**PAIRS, binary=True),
            "tf-idf": lambda: TfidfVectorizer(sublinear_tf=True),
            "counts": lambda: CountVectorizer(),
        }[kind]()
        began = CPU()
        X = vectorizer.fit_transform(self.train.texts)
        taken = CPU() - began
        return X, vectorizer.transform(self.test.texts), taken


# -- quality -----------------------------------------------------------------------------------


def boosted(X: Any, Y: np.ndarray, X_new: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Values and choices of boosted words on new documents."""
    model = WordStumpBooster(n_jobs=1, **options).fit(X, Y)
    return model.decision_function(X_new), model.predict(X_new).astype(bool)


def one_by_one(X: Any, Y: np.ndarray, X_new: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same by one booster for each category."""
    each = [boosted(X, y, X_new, **options) for y in Y.T]
    values, picked = zip(*each, strict=True)
    return np.column_stack(values), np.column_stack(picked)


def linear(X: Any, Y: np.ndarray, X_new: Any) -> tuple[np.ndarray, np.ndarray]:
    """One linear SVM for each category."""
    f = [LinearSVC(n_jobs=1).fit(X, y).decision_function(X_new) for y in Y.T]
    return np.column_stack(f), np.column_stack(f) > 0


def bayes(X: Any, Y: np.ndarray, X_new: Any, model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Naive Bayes, one against the rest."""
    P = OneVsRestClassifier(model).fit(X, Y.astype(int)).predict_proba(X_new)
    return P, P > 0.5


def methods(count: int) -> dict[str, tuple[str, Callable]]:
    """What is compared: which words each sees, and what it makes of them."""
    long = 5000 if count > 10 else 2000
    each: dict[str, tuple[str, Callable]] = {
        "boosted words, real, 500 rounds": (
            "pairs",
            lambda *a: boosted(*a, n_estimators=500),
        ),
        "the same, thresholds by F1 of 3 folds": (
            "pairs",
            lambda *a: boosted(*a, n_estimators=500, thresholds="f1"),
        ),
        "abstaining, 500 rounds": (
            "pairs",
            lambda *a: boosted(*a, n_estimators=500, stump="abstaining"),
        ),
        "discrete, 500 rounds": (
            "pairs",
            lambda *a: boosted(*a, n_estimators=500, stump="discrete"),
        ),
        f"real, {long} rounds": ("pairs", lambda *a: boosted(*a, n_estimators=long)),
        "real, a booster for each category, 200 rounds": (
            "pairs",
            lambda *a: one_by_one(*a, n_estimators=200),
        ),
        "LinearSVC, tf-idf": ("tf-idf", linear),
        "naive Bayes, counts": ("counts", lambda *a: bayes(*a, MultinomialNB())),
        "naive Bayes, presence": ("counts", lambda *a: bayes(*a, BernoulliNB())),
    }
    return each


def quality(
    reuters: Reuters,
    count: int,
    some: list[str],
    record: Callable[[str, dict], None],
    labelled: bool = False,
) -> None:
    """Precision, recall, F1, break-even point and one-error of all methods, or of some.

    On documents that have a category only, if so wanted.
    """
    Y, Y_new = reuters.labels(count)
    inside, outside = (part.any(axis=1) | (not labelled) for part in (Y, Y_new))
    Y, Y_new = Y[inside], Y_new[outside]
    for name, (words, method) in methods(count).items():
        if not any(one in name for one in some):
            continue
        X, X_new, _ = reuters.words(words)
        X, X_new = X[inside], X_new[outside]
        began = CPU()
        values, picked = method(X, Y, X_new)
        record(name, {"seconds": CPU() - began, **judged(Y_new, values, picked)})


def judged(truth: np.ndarray, values: np.ndarray, picked: np.ndarray) -> dict[str, float]:
    """All measures of values and choices."""
    P, R, F1, _ = precision_recall_fscore_support(truth, picked, average="micro")
    even = [break_even(y, f) for y, f in zip(truth.T, values.T, strict=True)]
    return {
        "precision": P,
        "recall": R,
        "F1": F1,
        "macro": f1_score(truth, picked, average="macro", zero_division=0),
        "break-even": float(np.average(even, weights=truth.sum(axis=0))),
        "one-error": ranking_scores(truth, values).one_error,
    }


def break_even(truth: np.ndarray, values: np.ndarray) -> float:
    """Precision, and recall, where as many documents are chosen as there are."""
    return float(truth[np.argsort(-values, kind="stable")[: truth.sum()]].mean())


def categories(reuters: Reuters, record: Callable[[str, dict], None]) -> None:
    """Errors on documents with one topic, by the number of categories."""
    for count in LARGEST:
        names = _alone(reuters)[:count]
        rows, y = zip(
            *(_one_topic(part, names) for part in (reuters.train, reuters.test)), strict=True
        )
        views = {kind: reuters.words(kind)[:2] for kind in ("pairs", "tf-idf", "counts")}
        X = {kind: (a[rows[0]], b[rows[1]]) for kind, (a, b) in views.items()}
        models = {
            "boosted words, real": ("pairs", WordStumpBooster(500, n_jobs=1)),
            "boosted words, discrete": ("pairs", WordStumpBooster(500, stump="discrete", n_jobs=1)),
            "LinearSVC": ("tf-idf", LinearSVC(n_jobs=1)),
            "naive Bayes": ("counts", MultinomialNB()),
            "Rocchio": ("tf-idf", NearestCentroid()),
        }
        found: dict[str, float] = {"train": len(rows[0]), "test": len(rows[1])}
        for name, (kind, model) in models.items():
            inside, outside = X[kind]
            if name == "Rocchio":  # centroids of one length: the nearest has the largest cosine
                model.fit(inside, y[0])
                values = outside @ normalize(model.centroids_).T
                found[name] = float(np.mean(model.classes_[values.argmax(axis=1)] != y[1]))
            else:
                found[name] = float(np.mean(model.fit(inside, y[0]).predict(outside) != y[1]))
        record(str(count), found)


def _alone(reuters: Reuters) -> list[str]:
    """Categories by how many training documents have nothing else, the largest first."""
    alone = [topics[0] for topics in reuters.train.topics if len(topics) == 1]
    tested = {topics[0] for topics in reuters.test.topics if len(topics) == 1}
    names, counts = np.unique(alone, return_counts=True)
    return [name for name in names[np.argsort(-counts, kind="stable")] if name in tested]


def _one_topic(part: Any, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Rows with one topic that is among these, and their topics."""
    rows = [i for i, topics in enumerate(part.topics) if len(topics) == 1 and topics[0] in names]
    return np.array(rows), np.array([part.topics[i][0] for i in rows])


# -- time --------------------------------------------------------------------------------------


def speed(reuters: Reuters, repeats: int, record: Callable[[str, dict], None]) -> None:
    """Five hundred rounds on ten and ninety categories, by one thread and two."""
    X, _, reading = reuters.words("pairs")
    for count in (10, len(reuters.categories)):
        Y = reuters.labels(count)[0]
        WordStumpBooster(3, n_jobs=1).fit(X, Y)  # compiles
        taken: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
        for _ in range(repeats):
            for threads, times in taken.items():
                began = CPU(), WALL()
                WordStumpBooster(500, n_jobs=threads).fit(X, Y)
                times.append((CPU() - began[0], WALL() - began[1]))
        (cpu, alone), (_, together) = (np.min(times, axis=0) for times in taken.values())
        tracemalloc.start()
        WordStumpBooster(5, n_jobs=1).fit(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        record(
            f"{count} categories",
            {
                "words": X.shape[1],
                "entries": int(X.nnz),
                "reading": reading,
                "CPU": cpu,
                "wall 1": alone,
                "wall 2": together,
                "memory": peak,
                "matrix": X.indices.nbytes + X.indptr.nbytes,
            },
        )


def ablation(reuters: Reuters, repeats: int, record: Callable[[str, dict], None]) -> None:
    """Two hundred rounds, with the kept sums and the bounds and without."""
    X, _, _ = reuters.words("pairs")
    ways = {  # least documents of a word whose sums are kept; rounds until they are made anew
        "kept sums from 16 documents on, bounds below": (16, 32),
        "from 8 documents on": (8, 32),
        "from 64 documents on": (64, 32),
        "kept sums of all words": (1, 32),
        "no kept sums, bounds for all words": (1 << 40, 32),
        "all sums anew in every round": (1, 1),
    }
    usual = rounds_of._KEPT, rounds_of._FRESH
    for count in (10, len(reuters.categories)):
        Y = reuters.labels(count)[0]
        words = set()

        def work(way: tuple[int, int]) -> None:
            rounds_of._KEPT, rounds_of._FRESH = way
            words.add(tuple(WordStumpBooster(200, n_jobs=1).fit(X, Y).words_.columns))  # noqa: B023

        taken = in_turns({k: lambda way=way: work(way) for k, way in ways.items()}, repeats, CPU)
        rounds_of._KEPT, rounds_of._FRESH = usual
        if len(words) > 1:
            print("not all ways have found the same words", flush=True)
        same = float(len(words) == 1)
        record(f"{count} categories", {**{k: min(t) for k, t in taken.items()}, "same": same})


def growth(reuters: Reuters, record: Callable[[str, dict], None]) -> None:
    """CPU seconds of 200 rounds, with more of one thing at a time."""
    X, _, _ = reuters.words("pairs")
    Y = reuters.labels(len(reuters.categories))[0]
    order = np.random.default_rng(0).permutation(X.shape[0])

    def taken(X: Any, Y: np.ndarray, rounds: int = 200) -> float:
        began = CPU()
        WordStumpBooster(rounds, n_jobs=1).fit(X, Y)
        return CPU() - began

    for rounds in (100, 200, 400, 800):
        record(f"{rounds} rounds", {"seconds": taken(X, Y[:, :10], rounds)})
    for share in (8, 4, 2, 1):
        rows = order[: len(order) // share]
        some, labels = X[rows], Y[rows, :10]
        record(f"{len(rows)} documents", {"seconds": taken(some, labels)})
    for count in (1, 5, 10, 30, 90):
        record(f"{count} labels", {"seconds": taken(X, Y[:, : max(count, 1)])})
    for longest in (1, 2, 3):
        words = CountVectorizer(ngram_range=(1, longest), min_df=2)
        wide = words.fit_transform(reuters.train.texts)
        name = f"phrases of up to {longest}: {wide.shape[1]:,} words, {wide.nnz:,} entries"
        record(name, {"seconds": taken(wide, Y[:, :10])})


# -- pictures ----------------------------------------------------------------------------------


def pictures(reuters: Reuters, records: Records, record: Callable[[str, dict], None]) -> None:
    """Draw the first words of ten categories, and the errors against the number of categories."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    names = reuters.categories[:10]
    topics = [[topic for topic in own if topic in names] for own in reuters.train.topics]
    model = WordStumpBooster(15, n_jobs=1, **PAIRS).fit(reuters.train.texts, topics)
    plot_boosted_words(model)[0, 0].figure.savefig(RESULTS / "text-words.png", dpi=80)
    ax = plt.subplots(figsize=(6.0, 3.6), layout="constrained")[1]
    found = records.get("categories", {})
    for name in [n for n in next(iter(found.values()), {}) if n not in ("train", "test")]:
        ax.plot(
            [int(k) for k in found], [100 * one[name] for one in found.values()], "o-", label=name
        )
    ax.set(xlabel="categories", ylabel="error on new documents, %", ylim=(0, None))
    ax.legend()
    ax.figure.savefig(RESULTS / "text-categories.svg")
    record("words", {"first": model.words_[0].word})


# -- report ------------------------------------------------------------------------------------


def report(records: Records) -> str:
    """Write all parts as text."""
    parts = [
        "# Boosted words on Reuters-21578\n",
        f"{in_words(records['environment'])}\n",
        "`python benchmarks/text.py --data FOLDER`; what each part does is in the file.\n",
    ]
    titles = {
        "ten": "Ten largest categories",
        "ninety": "All 90 categories",
        "labelled": "All 90 categories, documents with a category only",
    }
    for name, title in titles.items():
        if name in records:
            columns = ["precision", "recall", "F1", "macro", "break-even", "one-error"]
            lines = [
                [method, *(f"{100 * found[c]:.1f}" for c in columns), f"{found['seconds']:.1f}"]
                for method, found in records[name].items()
            ]
            header = ["", "precision", "recall", "F1 micro", "F1 macro", "break-even", "one-error"]
            parts += [f"## {title}\n", table([*header, "CPU s, fit and predict"], lines), ""]
    parts += [
        "Published, on the same split (break-even points weighted as here; words, their selection "
        "and, for Yang and Liu, the documents without a topic, which they leave out, differ):\n",
        table(["", "categories, measure", "percent"], [list(row) for row in PUBLISHED]),
        "",
    ]
    if "categories" in records:
        found = records["categories"]
        names = [n for n in next(iter(found.values())) if n not in ("train", "test")]
        lines = [
            [
                k,
                *(f"{one[n]:.0f}" for n in ("train", "test")),
                *(f"{100 * one[n]:.1f}" for n in names),
            ]
            for k, one in found.items()
        ]
        parts += [
            "## Error against the number of categories, documents with one topic\n",
            table(["categories", "train", "test", *names], lines),
            "\n![The same as curves](text-categories.svg)\n",
        ]
    if "speed" in records:
        lines = [
            [
                name,
                f"{one['words']:,}",
                f"{one['entries']:,}",
                *(f"{one[k]:.1f}" for k in ("reading", "CPU", "wall 1", "wall 2")),
                f"{one['memory'] / 2**20:.0f}",
                f"{one['matrix'] / 2**20:.0f}",
            ]
            for name, one in records["speed"].items()
        ]
        header = ["", "words", "entries", "reading, s", "500 rounds, CPU s", "wall, 1 thread"]
        more = ["wall, 2 threads", "peak memory of the fit, MB", "indices of X, MB"]
        parts += ["## Time and memory\n", table([*header, *more], lines), ""]
    if "ablation" in records:
        found = records["ablation"]
        ways = [k for k in next(iter(found.values())) if k != "same"]
        lines = [[way, *(f"{one[way]:.1f}" for one in found.values())] for way in ways]
        same = all(one["same"] for one in found.values())
        said = "All ways find the same words." if same else "Ways differ in words of equal Z."
        title = "## 200 rounds with and without kept sums and bounds, CPU s\n"
        parts += [title, table(["", *found], lines), f"\n{said}\n"]
    if "growth" in records:
        lines = [[name, f"{one['seconds']:.2f}"] for name, one in records["growth"].items()]
        parts += ["## Growth\n", table(["200 rounds, ten labels, unless said", "CPU s"], lines), ""]
    return "\n".join(parts)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_option(parser)
    parser.add_argument("--only", default="", help="parts, with commas between them")
    parser.add_argument("--method", default="", help="of ten and ninety, those with this in it")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    records, reuters = Records(RESULTS / "text.json"), Reuters(options.data)
    parts: dict[str, Callable[[Callable[[str, dict], None]], None]] = {
        "ten": lambda keep: quality(reuters, 10, [options.method], keep),
        "ninety": lambda keep: quality(reuters, 90, [options.method], keep),
        "labelled": lambda keep: quality(reuters, 90, LABELLED, keep, labelled=True),
        "categories": lambda keep: categories(reuters, keep),
        "speed": lambda keep: speed(reuters, options.repeats, keep),
        "ablation": lambda keep: ablation(reuters, options.repeats, keep),
        "growth": lambda keep: growth(reuters, keep),
        "pictures": lambda keep: pictures(reuters, records, keep),
    }
    for name in chosen(options.only, parts, parser):
        records["environment"] = environment()
        found: dict[str, dict] = dict(records.get(name, {})) if options.method else {}

        def keep(key: str, one: dict) -> None:
            found[key] = one  # noqa: B023
            print(key, one, flush=True)

        parts[name](keep)
        records[name] = found
        records.save()
        records.write(report(records))


if __name__ == "__main__":
    main()
