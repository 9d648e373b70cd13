"""Compiled recursions over two strings, many pairs at a time: common subsequences, and alignments.

A cell of a recursion waits for the one before it. So ``LANES`` pairs go side by side, one in each
lane of the vector registers; shorter strings are filled up with a letter that fits nothing.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit

LANES = 32
_LARGE = 1e150  # from which sums are scaled down


@njit(cache=True, **INNER)
def _side_by_side(codes, begin, chosen, filling, letters):
    """Write some strings into the columns of ``letters``; returns the length of the longest."""
    letters[:] = filling
    longest = 0
    for lane, row in enumerate(chosen):
        length = begin[row + 1] - begin[row]
        longest = max(longest, length)
        for place in range(length):
            letters[place, lane] = codes[begin[row] + place]
    return longest


@njit(cache=True, nogil=True)
def subsequences(codes, begin, rows, other_codes, other_begin, columns, k, decay, out):
    """Write the subsequence kernel of string ``rows[i]`` and another, ``columns[i]``, for each i.

    ``inside[i, t]`` is K'_i(x[:s], z[:t]) of Lodhi et al. (2002), row by row of x.
    """
    height = np.max(begin[rows + 1] - begin[rows])
    width = np.max(other_begin[columns + 1] - other_begin[columns])
    xs = np.empty((height, LANES), dtype=np.uint32)
    zs = np.empty((width, LANES), dtype=np.uint32)
    inside = np.empty((k, width + 1, LANES))
    along, total = np.empty(LANES), np.empty(LANES)
    square = decay * decay
    for first in range(0, rows.shape[0], LANES):
        chosen = slice(first, first + LANES)
        n = _side_by_side(codes, begin, rows[chosen], 0xFFFFFFFE, xs)  # no character has these two
        m = _side_by_side(other_codes, other_begin, columns[chosen], 0xFFFFFFFF, zs)
        inside[0, : m + 1] = 1.0
        inside[1:, : m + 1] = 0.0
        total[:] = 0.0
        for s in range(n):
            x, last = xs[s], inside[k - 1]
            for t in range(m):
                for lane in range(LANES):
                    total[lane] += last[t, lane] if zs[t, lane] == x[lane] else 0.0
            for p in range(k - 1, 0, -1):
                line, before = inside[p], inside[p - 1]
                along[:] = 0.0
                for t in range(m):
                    for lane in range(LANES):
                        new = square * before[t, lane] if zs[t, lane] == x[lane] else 0.0
                        new += decay * along[lane]
                        along[lane] = new
                        line[t + 1, lane] = decay * line[t + 1, lane] + new
        for lane in range(min(LANES, rows.shape[0] - first)):
            out[first + lane] = square * total[lane]


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
    """Write ``ln sum over local alignments of exp(beta score)`` to ``out[i]``, for each pair.

    Pairs are string ``rows[i]`` and another, ``columns[i]``. ``weights`` are ``exp(beta s(a, b))``,
    those of a gap's first and further letters ``exp(-beta cost)``. The recursion of Saigo et al.
    (2004) row by row: a line of ``cells`` has their M, X and Y side by side, which are scaled down
    together where they grow large.
    """
    height = np.max(begin[rows + 1] - begin[rows])
    width = np.max(other_begin[columns + 1] - other_begin[columns])
    size = weights.shape[0]
    padded = np.zeros((size + 1, size + 1))
    padded[:size, :size] = weights
    flat = padded.ravel()
    xs = np.empty((height, LANES), dtype=np.uint64)
    zs = np.empty((width, LANES), dtype=np.uint64)
    cells, score = np.empty((width + 1, 3 * LANES)), np.empty(LANES)
    sums, logarithm = np.empty((4, LANES)), np.empty(LANES)
    total, one, corner, largest = sums[0], sums[1], sums[2], sums[3]
    for first in range(0, rows.shape[0], LANES):
        chosen = slice(first, first + LANES)
        n = _side_by_side(codes, begin, rows[chosen], size, xs)
        m = _side_by_side(other_codes, other_begin, columns[chosen], size, zs)
        cells[: m + 1] = 0.0
        total[:], one[:], logarithm[:] = 1.0, 1.0, 0.0  # the empty alignment
        for s in range(n):
            x = xs[s] * np.uint64(size + 1)
            corner[:] = one
            largest[:] = total
            for t in range(m):
                left, here = cells[t], cells[t + 1]
                for lane in range(LANES):  # on its own: the rest needs no look-up
                    score[lane] = flat[x[lane] + zs[t, lane]]
                for lane in range(LANES):
                    above, above_x = here[lane], here[LANES + lane]
                    match = score[lane] * corner[lane]
                    corner[lane] = one[lane] + above + above_x + here[2 * LANES + lane]
                    here[lane] = match
                    here[LANES + lane] = open_weight * above + extend_weight * above_x
                    here[2 * LANES + lane] = (
                        open_weight * (left[lane] + left[LANES + lane])
                        + extend_weight * left[2 * LANES + lane]
                    )
                    total[lane] += match
                    largest[lane] = match if match > largest[lane] else largest[lane]
            for lane in range(LANES):
                most = max(largest[lane], total[lane])
                if most > _LARGE:
                    one[lane] /= most
                    total[lane] /= most
                    logarithm[lane] += np.log(most)
                    for t in range(m + 1):
                        for part in range(3):
                            cells[t, part * LANES + lane] /= most
        for lane in range(min(LANES, rows.shape[0] - first)):
            out[first + lane] = np.log(total[lane]) + logarithm[lane]


@njit(cache=True, nogil=True)
def add_where_same(codes, begin, rows, other_codes, other_begin, columns, shift, out):
    """Add ``shift`` to ``out[i]`` where string ``rows[i]`` and the other, ``columns[i]``, agree."""
    for i in range(rows.shape[0]):
        x, z = begin[rows[i]], other_begin[columns[i]]
        length = begin[rows[i] + 1] - x
        if other_begin[columns[i] + 1] - z == length:
            place = 0
            while place < length and codes[x + place] == other_codes[z + place]:
                place += 1
            if place == length:
                out[i] += shift
