"""Stumps on the presence of words, for AdaBoost.MH: sums of weights, and the word with the least Z.

Document i weighs ``D(i, l)`` on label l. These weights are stored in two parts: ``minus`` (n, k)
where i does not have l (zero elsewhere), and ``plus``, one number for each label that a document
has, in the order of ``labels[begin[i]:begin[i + 1]]``. Both are in units of their own: the true
weight is the stored one times ``scale[0, l]`` (plus) or ``scale[1, l]`` (minus). A stump changes
the weights of all documents without its word by the same factor, for a label and a side; in these
units only the documents *with* the word change.

A word's sums over its documents are ``a`` of plus and ``b`` of minus, ``T`` those over all:

    real          Z = 2 sum_l [ sqrt(a b) + sqrt((T+ - a) (T- - b)) ]
    abstaining    Z = 1 - sum_l (sqrt(a) - sqrt(b))^2
    discrete     -r = - sum_l [ |a - b| + |(T+ - a) - (T- - b)| ]

What a word lowers them by, from their value without any word, is at most a sum over its documents:
with ``p = a / T+``, ``q = b / T-`` the real one is ``2 sum_l sqrt(T+ T-) BC(p, q)`` with the
Bhattacharyya coefficient BC, and ``1 - BC(p, q) <= 1 - sqrt(1 - max(p, q)) <= p + q`` (BC is
concave in the smaller of the two, so that it is least where that is zero). A word that cannot be
better than the best so far is not looked at any further.

Reference: Schapire and Singer, Machine Learning 39, 2000, section 4.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit

REAL, ABSTAINING, DISCRETE = 0, 1, 2
TIE = 1e-12  # by which a score has to be lower to be better: below, it is the order of sums
_ROUNDING = 1e-9  # by which a bound may be off, relative to what all words together weigh
_SUMS = {"contract", "reassoc"}


@njit(cache=True, fastmath={"contract"}, **INNER)
def _add(i, minus, plus, begin, labels, out):
    """Add the weights of document i to ``out`` (2, k)."""
    row, ours, theirs = minus[i], out[0], out[1]
    for label in range(len(row)):
        theirs[label] += row[label]
    for at in range(begin[i], begin[i + 1]):
        ours[labels[at]] += plus[at]


@njit(cache=True, fastmath=_SUMS, **INNER)
def _score(sums, totals, scale, root, kind):
    """What is to be small for a word with these sums; ``root`` is ``sqrt(scale[0] scale[1])``."""
    k, found = sums.shape[1], 0.0
    a, b, ours, theirs = sums[0], sums[1], totals[0], totals[1]
    if kind == REAL:
        for label in range(k):
            with_word = max(a[label] * b[label], 0.0)
            without = max(ours[label] - a[label], 0.0) * max(theirs[label] - b[label], 0.0)
            found += root[label] * (np.sqrt(with_word) + np.sqrt(without))
        return 2.0 * found
    for label in range(k):
        x, y = scale[0, label] * a[label], scale[1, label] * b[label]
        if kind == ABSTAINING:
            found += x + y - 2.0 * np.sqrt(max(x * y, 0.0))
        else:
            rest = scale[0, label] * ours[label] - scale[1, label] * theirs[label] - (x - y)
            found += abs(x - y) + abs(rest)
    return 1.0 - found if kind == ABSTAINING else -found


@njit(cache=True, nogil=True, error_model="numpy")
def sum_words(words, first, last, columns, documents, minus, plus, begin, labels, sums):
    """Write the sums of some words, ``words[first:last]``, into those rows of ``sums``.

    Word w stands in ``documents[columns[w]:columns[w + 1]]``.
    """
    for at in range(first, last):
        word = words[at]
        sums[at] = 0.0
        for place in range(columns[word], columns[word + 1]):
            _add(documents[place], minus, plus, begin, labels, sums[at])


@njit(cache=True, nogil=True, error_model="numpy")
def add_changes(changed, by_minus, by_plus, starts, begin, labels, rows, words, first, last, sums):
    """Add what has changed in some documents to the sums of the words ``first`` to ``last``.

    Document ``changed[c]`` has changed by ``by_minus[c]`` and, from ``starts[c]`` on, ``by_plus``;
    its words are ``words[rows[i]:rows[i + 1]]``, in order.
    """
    for c in range(len(changed)):
        i = changed[c]
        at, end = rows[i], rows[i + 1]
        if first > 0:
            at += np.searchsorted(words[at:end], first)
        change = by_minus[c]
        for place in range(at, end):
            word = words[place]
            if word >= last:
                break
            ours, theirs = sums[word, 0], sums[word, 1]
            for label in range(len(change)):
                theirs[label] += change[label]
            for step in range(begin[i + 1] - begin[i]):
                ours[labels[begin[i] + step]] += by_plus[starts[c] + step]


@njit(cache=True, nogil=True, error_model="numpy")
def least_of_sums(first, last, sums, totals, scale, root, kind):
    """Return the least score of some words whose sums are known, and the first with it.

    Here and below scores that differ by no more than ``TIE`` are the same.
    """
    best, found = np.inf, -1
    for word in range(first, last):
        score = _score(sums[word], totals, scale, root, kind)
        if score < best - TIE:
            found = word
        best = min(best, score)
    return best, found


@njit(cache=True, nogil=True, fastmath=_SUMS, error_model="numpy")
def shares(first, last, minus, plus, begin, labels, slope, out):
    """Write the most by which each document may lower the score of its words into ``out``.

    ``slope`` (2, k): how fast the score may fall with a label's plus and minus, as stored.
    """
    theirs = slope[1]
    for i in range(first, last):
        row, total = minus[i], 0.0
        for label in range(len(row)):
            total += theirs[label] * row[label]
        for at in range(begin[i], begin[i + 1]):
            total += slope[0, labels[at]] * plus[at]
        out[i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def least_of_words(
    words,
    first,
    last,
    columns,
    documents,
    share,
    without,
    limit,
    minus,
    plus,
    begin,
    labels,
    totals,
    scale,
    root,
    kind,
):
    """Return the least score of some words, the first with it, and a count.

    Only words whose documents' ``share`` allows a score of ``limit`` are summed up: the count is of
    these. Where there is none, the word is -1.
    """
    best, found, looked_at = np.inf, -1, 0
    sums = np.empty((2, minus.shape[1]))
    slack = _ROUNDING * (abs(without) + 1e-3) + TIE
    for at in range(first, last):
        word, bound = words[at], 0.0
        for place in range(columns[word], columns[word + 1]):
            bound += share[documents[place]]
        if without - bound > min(limit, best) + slack:
            continue
        looked_at += 1
        sums[:] = 0.0
        for place in range(columns[word], columns[word + 1]):
            _add(documents[place], minus, plus, begin, labels, sums)
        score = _score(sums, totals, scale, root, kind)
        if score < best - TIE:
            found = word
        best = min(best, score)
    return best, found, looked_at


@njit(cache=True, nogil=True, error_model="numpy")
def reweigh(changed, factors, step, minus, plus, begin, labels, values, by_minus, by_plus):
    """Multiply the stored weights of some documents by ``factors`` (2, k), plus and minus.

    Changes ``minus``, ``plus`` and, by ``step`` (k,), the documents' ``values`` (n, k); writes the
    differences of the weights into ``by_minus`` and ``by_plus``.
    """
    at = 0
    for c in range(len(changed)):
        i = changed[c]
        for label in range(len(step)):
            new = minus[i, label] * factors[1, label]
            by_minus[c, label] = new - minus[i, label]
            minus[i, label] = new
            values[i, label] += step[label]
        for place in range(begin[i], begin[i + 1]):
            new = plus[place] * factors[0, labels[place]]
            by_plus[at] = new - plus[place]
            plus[place] = new
            at += 1


@njit(cache=True, nogil=True, error_model="numpy")
def account(first, last, minus, plus, begin, labels, values, shift, weight):
    """Return the sums of the stored weights of some documents (2, k), and what they err by.

    A document errs on a label that it has where ``values + shift <= 0``, and on another where that
    is positive; each error counts the document's ``weight``.
    """
    totals, wrong = np.zeros((2, minus.shape[1])), 0.0
    for i in range(first, last):
        _add(i, minus, plus, begin, labels, totals)
        errors = 0
        for label in range(len(shift)):
            errors += values[i, label] + shift[label] > 0.0
        for at in range(begin[i], begin[i + 1]):
            # a label that it has: right where the value is positive, counted as an error above
            errors += 1 - 2 * (values[i, labels[at]] + shift[labels[at]] > 0.0)
        wrong += weight[i] * errors
    return totals, wrong
