"""The data sets of every benchmark, by one loader.

Names are of three kinds. ``FILES`` are read from a folder, which ``--data FOLDER`` or the
environment variable ``MAXMARGIN_DATA`` gives: arrays ``X`` and ``y`` (CSR as ``X_data``,
``X_indices``, ``X_indptr``, ``X_shape``) and perhaps a test part ``X_test``, ``y_test``; Reuters is
lines of JSON. There is no default folder. ``BUILT_IN`` are scikit-learn's own, ``MADE`` are drawn
here: both need no folder.

Scaling takes its limits from all training rows of a file, so that subsets of it share them. Where
only some rows are wanted, they are the first of a permutation with seed 0.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn import datasets

VARIABLE = "MAXMARGIN_DATA"
Points = np.ndarray | sp.csr_matrix


@dataclass(frozen=True)
class File:
    """A file of the data folder, and how its values are usually scaled.

    ``unit`` is the value of ``X`` that becomes one, and ``limits`` what the smallest and largest
    value of a column become; ``regression`` says that the target is real, and ``positive`` makes
    two classes of several: this one and the rest.
    """

    path: str
    unit: float = 1.0
    limits: tuple[int, int] | None = None
    regression: bool = False
    positive: int | None = None


def _reals(*names: str) -> dict[str, File]:
    return {name: File(f"{name}.npz", regression=True) for name in names}


FILES = {
    "a9a": File("a9a.npz"),
    "w8a": File("w8a.npz"),
    "covtype": File("covtype.npz", limits=(0, 1), positive=2),
    "mnist": File("mnist.npz", unit=255.0),
    "usps": File("usps.npz"),
    "letter": File("letter.npz", limits=(-1, 1)),
    "satimage": File("satimage.npz", limits=(0, 1)),
    "pendigits": File("pendigits.npz", limits=(0, 1)),
    "shuttle": File("shuttle.npz", limits=(0, 1)),
    "skin": File("skin_nonskin.npz", unit=255.0),
    "magic04": File("magic04.npz"),
    "spambase": File("spambase.npz"),
    "cod_rna_standardized": File("cod_rna_standardized.npz"),
    "susy_30k": File("susy_30k.npz"),
    "htru2": File("htru2.npz"),
    "svmguide1": File("small/svmguide1.npz"),
    "ida_banana": File("small/ida_banana.npz"),
    **_reals("california_housing", "gp_kin40k", "gp_protein", "bike_sharing_hour", "gp_pol"),
    **_reals("abalone", "winequality_white"),
}
REUTERS = "reuters21578.jsonl.gz"
BUILT_IN = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}


def _made_classes(rows: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_classification(rows, 20, random_state=0)


def _made_overlap(rows: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_classification(rows, 20, flip_y=0.2, class_sep=0.5, random_state=0)


def _made_moons(rows: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_moons(rows, noise=0.2, random_state=0)


def _made_linear(rows: int = 500_000) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian points in 50 dimensions, a linear target and noise of a tenth of its size."""
    random = np.random.default_rng(0)
    X = random.standard_normal((rows, 50))
    target = X @ random.standard_normal(50)
    return X, target + 0.1 * target.std() * random.standard_normal(rows)


def _made_border(rows: int = 2_000_000) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian points in 20 dimensions, a curved border, 0.3 % of the labels turned; float32."""
    random = np.random.default_rng(0)
    X = random.standard_normal((rows, 20), dtype=np.float32)
    border = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * X[:, 3]
    return X, ((border > 0) ^ (random.random(rows) < 0.003)).astype(int)


MADE: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "made classes": _made_classes,
    "made overlap": _made_overlap,
    "made moons": _made_moons,
    "made linear": _made_linear,
    "made border": _made_border,
}


@dataclass(frozen=True)
class Data:
    """Rows and their labels or targets; ``X_new`` and ``y_new`` are rows to predict, perhaps none.

    Those are the file's test part, or else the rows that follow in the permutation, or else (all
    rows are taken and there is no test part) training rows again.
    """

    X: Points
    y: np.ndarray
    X_new: Points
    y_new: np.ndarray


def add_option(parser: argparse.ArgumentParser) -> None:
    """Let a benchmark take ``--data FOLDER``."""
    given = os.environ.get(VARIABLE)
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        default=Path(given) if given else None,
        help=f"folder of the data sets; without it the environment's {VARIABLE}",
    )


def available(name: str, folder: Path | None) -> bool:
    """Whether a data set can be loaded here."""
    if name in FILES:
        return folder is not None and (folder / FILES[name].path).exists()
    return name in BUILT_IN or name in MADE


def is_regression(name: str) -> bool:
    """Whether a data set has a real target."""
    return name in ("diabetes", "made linear") or (name in FILES and FILES[name].regression)


def load(
    name: str,
    folder: Path | None = None,
    rows: int | None = None,
    scaling: str = "usual",
    *,
    new: int | None = 0,
    sparse: bool = False,
    labels: str = "integers",
    dtype: type = np.float64,
) -> Data:
    """Read, cut and scale a data set.

    Parameters
    ----------
    name : str
        One of ``FILES``, ``BUILT_IN`` or ``MADE``.
    folder : Path, optional
        Where the files are.
    rows : int, optional
        How many to take, at random; all where there are no more, in their order.
    scaling : {"usual", "standardised", "none"}
        As the file's entry says; to columns (and a real target) of mean zero and deviation one; or
        as the values are.
    new : int, optional
        Rows to predict; None for all there are.
    sparse : bool
        CSR, unscaled, in place of dense.
    labels : {"integers", "signs", "two", "real"}
        Classes as they are numbered (two of them where the entry says so); the same as -1 and +1;
        two classes however many there are, the lower half and the upper; labels as a real target.
    dtype : type
        Of X.
    """
    X, y, test = (*MADE[name](rows), None) if name in MADE and rows else _stored(name, folder)
    order = np.random.default_rng(0).permutation(len(y))
    count = len(y) if rows is None else min(rows, len(y))
    chosen = order[:count] if count < len(y) else np.arange(len(y))
    if test is None:
        rest = order[count:] if count < len(y) else order
        test = X[rest[:new]], y[rest[:new]]
    file = FILES.get(name, File(name, regression=is_regression(name)))

    def points(part: Points) -> Points:
        if sparse:
            return sp.csr_matrix(part, dtype=dtype)
        return np.ascontiguousarray(_scaled(file, X, part, scaling), dtype=dtype)

    def target(values: np.ndarray) -> np.ndarray:
        return _target(file, y, values, labels, scaling)

    X_new, y_new = test[0][:new], test[1][:new]
    return Data(points(X[chosen]), target(y[chosen]), points(X_new), target(y_new))


def size(name: str, folder: Path | None = None) -> int:
    """Return the number of training rows of a data set."""
    return len(_stored(name, folder)[1])


def reuters(folder: Path, categories: int = 10) -> Iterator[tuple[str, Data]]:
    """Reuters-21578, ModApte split: the largest categories one by one, TF-IDF of single words."""
    train, largest = _reuters(folder, categories)
    X = _words(train)
    for topic in largest:
        y = np.array([1 if topic in document["topics"] else -1 for document in train])
        yield topic, Data(X, y, X[:0], y[:0])


def reuters_classes(folder: Path, categories: int = 10) -> Data:
    """Return the documents with one of the largest categories, by the rarest of theirs."""
    train, largest = _reuters(folder, categories)
    found = [[k for k, topic in enumerate(largest) if topic in d["topics"]] for d in train]
    X = _words([document for document, own in zip(train, found, strict=True) if own])
    y = np.array([max(own) for own in found if own])
    return Data(X, y, X[:0], y[:0])


@dataclass(frozen=True)
class Documents:
    """Texts, and the topics of each."""

    texts: list[str]
    topics: list[list[str]]


def reuters_documents(folder: Path) -> tuple[Documents, Documents, list[str]]:
    """Reuters-21578, ModApte split: 9,603 and 3,299 documents, and the categories in both parts.

    These are 90, the one with the most training documents first.
    """
    parts = []
    for part in ("train", "test"):
        some = _documents(folder, part)
        parts.append(Documents(_texts(some), [document["topics"] for document in some]))
    tested = {topic for topics in parts[1].topics for topic in topics}
    counts = Counter(topic for topics in parts[0].topics for topic in topics)
    return parts[0], parts[1], [topic for topic, _ in counts.most_common() if topic in tested]


def _documents(folder: Path, part: str) -> list[dict]:
    with gzip.open(_within(folder) / REUTERS, "rt") as file:
        documents = [json.loads(line) for line in file]
    return [document for document in documents if document["modapte"] == part]


def _texts(documents: list[dict]) -> list[str]:
    return [f"{document['title'] or ''}\n{document['body'] or ''}" for document in documents]


def _reuters(folder: Path, categories: int) -> tuple[list[dict], list[str]]:
    """Training documents, and the largest categories."""
    train = _documents(folder, "train")
    counts = Counter(topic for document in train for topic in document["topics"])
    return train, [topic for topic, _ in counts.most_common(categories)]


def _words(documents: list[dict]) -> sp.csr_matrix:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer().fit_transform(_texts(documents)).tocsr()


def _within(folder: Path | None) -> Path:
    if folder is None:
        raise SystemExit(f"Where are the data? Give --data FOLDER, or set {VARIABLE}.")
    return folder


@lru_cache(maxsize=1)
def _stored(name: str, folder: Path | None) -> tuple[Points, np.ndarray, tuple | None]:
    """Return all rows of a data set as they are, and its test part."""
    if name in BUILT_IN:
        return *BUILT_IN[name](return_X_y=True), None
    if name in MADE:
        return *MADE[name](), None
    if name not in FILES:
        known = ", ".join([*FILES, *BUILT_IN, *MADE])
        raise SystemExit(f"There is no data set {name}; known are {known}.")
    with np.load(_within(folder) / FILES[name].path) as file:
        X, y = _matrix(file, "X"), file["y"]
        return X, y, (_matrix(file, "X_test"), file["y_test"]) if "y_test" in file else None


def _matrix(file: np.lib.npyio.NpzFile, name: str) -> Points:
    """An array of a file, flat rows, or the CSR matrix that is stored in four."""
    if name in file:
        return file[name].reshape(len(file[name]), -1)
    parts = (file[f"{name}_data"], file[f"{name}_indices"], file[f"{name}_indptr"])
    return sp.csr_matrix(parts, shape=tuple(file[f"{name}_shape"]))


def _scaled(file: File, X: Points, rows: Points, scaling: str) -> np.ndarray:
    """Some rows, dense and scaled as the training rows X ask."""
    dense = np.asarray(rows.toarray() if sp.issparse(rows) else rows)
    if scaling == "none":
        return dense
    if scaling == "standardised" or file.regression:
        mean, deviation = _moments(X)
        return (dense - mean) / np.where(deviation > 0, deviation, 1.0)
    if file.limits is None:
        return dense.astype(np.float64) / file.unit
    least, largest = X.min(axis=0).astype(np.float64), X.max(axis=0)
    low, high = file.limits
    return low + (high - low) * (dense - least) / np.where(largest > least, largest - least, 1.0)


def _moments(X: Points) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of the columns."""
    if not sp.issparse(X):
        return X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    X = X.astype(np.float64)
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    return mean, np.sqrt(np.maximum(squares - mean**2, 0.0))


def _target(file: File, y: np.ndarray, values: np.ndarray, labels: str, scaling: str) -> np.ndarray:
    """Labels as they are asked for, or a real target."""
    if file.regression:
        real = values.astype(np.float64)
        mean, deviation = y.mean(dtype=np.float64), y.std(dtype=np.float64)
        return real if scaling == "none" else (real - mean) / deviation
    if labels == "real":
        return values.astype(np.float64)
    classes = np.unique(y)
    if file.positive is not None:
        values, classes = values == file.positive, np.array([False, True])
    elif labels == "two" and len(classes) > 2:
        values, classes = values >= classes[len(classes) // 2], np.array([False, True])
    if labels in ("signs", "two"):
        return np.where(values == classes[-1], 1, -1)
    return values.astype(np.int64)
