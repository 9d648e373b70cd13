"""Compiled passes over strings: their words, and the recursions over two of them."""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import njit

UNKNOWN = 255  # code of a character that the alphabet does not have
_LARGE = 1e150  # from which sums are scaled down


@njit(cache=True, nogil=True)
def words(codes, begin, k, size, reverse):
    """Number of the word of k characters that begins at each place; -1 where there is none.

    ``sum_i code_i size^(k-1-i)``; with ``reverse`` that of its reverse complement, whose characters
    are ``size - 1 - code`` from the back.
    """
    out = np.full(codes.shape[0], -1, dtype=np.int64)
    highest = np.int64(1)
    for _ in range(k - 1):
        highest *= size
    for row in range(begin.shape[0] - 1):
        number, there = np.int64(0), 0
        for place in range(begin[row], begin[row + 1]):
            code = np.int64(codes[place])
            if code == UNKNOWN:
                number, there = np.int64(0), 0
                continue
            if reverse:
                number = number // size + (size - 1 - code) * highest
            else:
                number = (number % highest) * size + code
            there += 1
            if there >= k:
                out[place - k + 1] = number
    return out


@njit(cache=True, nogil=True)
def counted(numbers, begin):
    """Distinct words of each row and how often they occur, as CSR: (indptr, indices, counts).

    ``numbers`` (strands, places) are those of :func:`words`.
    """
    strands, places = numbers.shape
    indptr = np.zeros(begin.shape[0], dtype=np.int64)
    indices = np.empty(strands * places, dtype=np.int64)
    counts = np.empty(strands * places)
    end = 0
    for row in range(begin.shape[0] - 1):
        own = np.empty(strands * (begin[row + 1] - begin[row]), dtype=np.int64)
        found = 0
        for strand in range(strands):
            for place in range(begin[row], begin[row + 1]):
                if numbers[strand, place] >= 0:
                    own[found] = numbers[strand, place]
                    found += 1
        own = np.sort(own[:found])
        for i in range(found):
            if i > 0 and own[i] == own[i - 1]:
                counts[end - 1] += 1.0
            else:
                indices[end], counts[end] = own[i], 1.0
                end += 1
        indptr[row + 1] = end
    return indptr, indices[:end].copy(), counts[:end].copy()


@njit(cache=True, nogil=True)
def similar_words(numbers, k, scores, threshold):
    """All words whose similarity with a given one is at least a threshold, for each of ``numbers``.

    The similarity is ``sum_i scores[u_i, v_i]``. Returns CSR parts (indptr, words). A search
    letter by letter, cut off where the best of what is left cannot reach the threshold.
    """
    size = scores.shape[0]
    best = np.empty(size)
    for a in range(size):
        best[a] = scores[a].max()
    indptr = np.zeros(numbers.shape[0] + 1, dtype=np.int64)
    found = np.empty(max(16, 8 * numbers.shape[0]), dtype=np.int64)
    end = 0
    letters, chosen = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    score, reachable = np.zeros(k + 1), np.zeros(k + 1)
    for row in range(numbers.shape[0]):
        rest = numbers[row]
        for i in range(k - 1, -1, -1):
            letters[i] = rest % size
            rest //= size
        for i in range(k - 1, -1, -1):
            reachable[i] = reachable[i + 1] + best[letters[i]]
        depth, chosen[0] = 0, -1
        while depth >= 0:
            chosen[depth] += 1
            if chosen[depth] == size:
                depth -= 1
                continue
            total = score[depth] + scores[letters[depth], chosen[depth]]
            if total + reachable[depth + 1] < threshold:
                continue
            if depth < k - 1:
                score[depth + 1] = total
                depth += 1
                chosen[depth] = -1
                continue
            if end == found.shape[0]:
                longer = np.empty(2 * end, dtype=np.int64)
                longer[:end] = found
                found = longer
            number = np.int64(0)
            for i in range(k):
                number = number * size + chosen[i]
            found[end] = number
            end += 1
        indptr[row + 1] = end
    return indptr, found[:end].copy()


@njit(cache=True, nogil=True)
def subsequences(codes, begin, rows, other_codes, other_begin, columns, k, decay, out):
    """Write the subsequence kernel between some strings and others into ``out``.

    ``inside[i, t]`` is K'_i(x[:s], z[:t]) of Lodhi et al. (2002), row by row of x.
    """
    longest = 0
    for column in columns:
        longest = max(longest, other_begin[column + 1] - other_begin[column])
    inside = np.empty((k, longest + 1))
    square = decay * decay
    for i, row in enumerate(rows):
        x = codes[begin[row] : begin[row + 1]]
        for j, column in enumerate(columns):
            z = other_codes[other_begin[column] : other_begin[column + 1]]
            m = z.shape[0]
            inside[0, : m + 1] = 1.0
            inside[1:, : m + 1] = 0.0
            total = 0.0
            for s in range(x.shape[0]):
                letter, last = x[s], inside[k - 1]
                for t in range(m):
                    if z[t] == letter:
                        total += last[t]
                for p in range(k - 1, 0, -1):
                    line, before, along = inside[p], inside[p - 1], 0.0
                    for t in range(m):
                        along *= decay
                        if z[t] == letter:
                            along += square * before[t]
                        line[t + 1] = decay * line[t + 1] + along
            out[i, j] = square * total


@njit(cache=True, nogil=True)
def alignments(
    codes,
    begin,
    rows,
    other_codes,
    other_begin,
    columns,
    weights,
    open_weight,
    extend_weight,
    out,
):
    """Write ``ln sum over local alignments of exp(beta score)`` into ``out``.

    ``weights`` are ``exp(beta s(a, b))``, those of a gap's first and further letters
    ``exp(-beta cost)``. The recursion of Saigo et al. (2004) row by row: ``match``, ``skip_x`` and
    ``skip_z`` are their M, X and Y, scaled down together where they grow large.
    """
    longest = 0
    for column in columns:
        longest = max(longest, other_begin[column + 1] - other_begin[column])
    match, skip_x = np.empty(longest + 1), np.empty(longest + 1)
    skip_z = np.empty(longest + 1)
    for i, row in enumerate(rows):
        x = codes[begin[row] : begin[row + 1]]
        for j, column in enumerate(columns):
            z = other_codes[other_begin[column] : other_begin[column + 1]]
            m = z.shape[0]
            match[: m + 1] = 0.0
            skip_x[: m + 1] = 0.0
            skip_z[: m + 1] = 0.0
            one, total, logarithm = 1.0, 1.0, 0.0  # the empty alignment
            for s in range(x.shape[0]):
                score = weights[x[s]]
                corner = one + match[0] + skip_x[0] + skip_z[0]
                largest = 0.0
                for t in range(1, m + 1):
                    above, above_x = match[t], skip_x[t]
                    next_corner = one + above + above_x + skip_z[t]
                    match[t] = score[z[t - 1]] * corner
                    skip_z[t] = (
                        open_weight * (match[t - 1] + skip_x[t - 1]) + extend_weight * skip_z[t - 1]
                    )
                    skip_x[t] = open_weight * above + extend_weight * above_x
                    total += match[t]
                    corner = next_corner
                    largest = max(largest, match[t])
                if max(largest, total) > _LARGE:
                    shrink = 1.0 / max(largest, total)
                    one *= shrink
                    total *= shrink
                    logarithm -= np.log(shrink)
                    for t in range(m + 1):
                        match[t] *= shrink
                        skip_x[t] *= shrink
                        skip_z[t] *= shrink
            out[i, j] = np.log(total) + logarithm
