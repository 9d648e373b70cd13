"""Checks of multiclass schemes."""

from __future__ import annotations

import pickle

import numpy as np

from maxmargin.multiclass import Scheme


def check_scheme(scheme: Scheme) -> None:
    """Hold a multiclass scheme to its contract.

    Code, tasks, layout and the sums over support vectors are replayed by hand, row by row; a point
    whose values are a class's own signs goes to this class and is most probably of it;
    probabilities are such; ``unanimous`` is true to the decisions.

    Parameters
    ----------
    scheme : Scheme
        For any number of classes; try it with two as well.

    Examples
    --------
    >>> from maxmargin.multiclass import OneVsRest
    >>> from maxmargin.testing import check_scheme
    >>> check_scheme(OneVsRest(4))
    """
    random = np.random.default_rng(0)
    code, n_classes = scheme.code, scheme.n_classes
    assert code.shape[1] == n_classes, "a code has a column for each class"
    assert np.isin(code, (-1, 0, 1)).all(), "a code has the entries -1, 0 and 1"
    assert len(np.unique(code, axis=1).T) == n_classes, "two classes have the same code"
    y = random.permutation(np.repeat(np.arange(n_classes), 7))
    tasks = scheme.tasks(y)
    assert len(tasks) == len(code), "there is a task for each row of the code"
    for codes, signs, (rows, labels) in zip(code, scheme.signs(y), tasks, strict=True):
        seen = [i for i in range(len(y)) if codes[y[i]]]
        assert rows.tolist() == seen, "a task has the rows of its classes, in order"
        assert labels.tolist() == [scheme.sign * codes[y[i]] for i in seen], "labels of a task"
        assert signs.tolist() == codes[y].tolist(), "signs of a machine"
    _check_layout(scheme, [rows for rows, _ in tasks], y, random)
    _check_answers(scheme, random)
    assert pickle.loads(pickle.dumps(scheme)) == scheme, "pickle changes the scheme"
    assert hash(pickle.loads(pickle.dumps(scheme))) == hash(scheme), "equal, but other hashes"


def _check_layout(
    scheme: Scheme, rows: list[np.ndarray], y: np.ndarray, random: np.random.Generator
) -> None:
    whole = np.zeros((len(rows), len(y)))  # coefficients of all machines on all rows
    for k, own in enumerate(rows):
        whole[k, own] = random.normal(size=len(own)) * (random.uniform(size=len(own)) < 0.6)
    machines = [(own, whole[k, own]) for k, own in enumerate(rows)]
    support, n_support, dual_coef = scheme.pack(machines, y)
    used = [i for c in range(len(n_support)) for i in np.flatnonzero(y == c) if whole[:, i].any()]
    assert support.tolist() == used, "support vectors are those of any machine, in order of class"
    assert n_support.tolist() == np.bincount(y[used], minlength=scheme.n_classes).tolist()
    assert dual_coef.shape == (scheme.n_rows, len(used)), "shape of dual_coef_"
    np.testing.assert_array_equal(scheme.expansions(dual_coef, n_support), whole[:, used])
    kernel = random.normal(size=(5, len(used)))
    counts = n_support if scheme.by_class else [len(used)]
    parts = np.split(np.arange(len(used)), np.cumsum(counts)[:-1])
    sums = np.stack([kernel[:, part] @ dual_coef[:, part].T for part in parts], axis=1)
    values = scheme.combine(sums)
    np.testing.assert_allclose(values, kernel @ whole[:, used].T, atol=1e-12, err_msg="combine")


def _check_answers(scheme: Scheme, random: np.random.Generator) -> None:
    code, classes = scheme.code, np.arange(scheme.n_classes)
    assert scheme.decode(code.T.astype(float)).tolist() == classes.tolist(), "a class's own signs"
    sure = scheme.probabilities(0.5 + 0.49 * code.T)
    assert sure.argmax(axis=1).tolist() == classes.tolist(), "probabilities of its own signs"
    values = random.normal(size=(400, len(code)))
    index, scores = scheme.decode(values), scheme.scores(values)
    assert index.shape == (400,)
    assert np.isin(index, classes).all(), "decode returns indices of classes"
    assert scores.shape == (400, scheme.n_classes), "scores has a column for each class"
    p = scheme.probabilities(random.uniform(0.01, 0.99, size=values.shape))
    assert (p >= 0).all(), "a probability is negative"
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9, err_msg="sum of probabilities")
    far = -1e4 * np.abs(values)
    for p in scheme.probabilities(np.zeros_like(values)), np.exp(scheme.log_probabilities(far)):
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9, err_msg="sum where none says yes")
    p = scheme.tempered(values, 2.0)
    assert p.shape == scores.shape, "shape of tempered probabilities"
    assert (p >= 0).all(), "a tempered probability is negative"
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9, err_msg="sum of tempered ones")
    sure = scheme.tempered(3.0 * code.T, 2.0)
    assert sure.argmax(axis=1).tolist() == classes.tolist(), "tempered ones of its own signs"
    own = random.integers(scheme.n_classes, size=400)
    right = np.where(code.T[own] != 0, code.T[own] * np.abs(values), values)
    agreed = (scheme.decode(right) == own).all()
    assert agreed or not scheme.unanimous, "says it is unanimous, but is not"
