"""Compiled passes over strings: their words, and how many of those of two are nearly the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from maxmargin.backends.compiled import INNER, njit

UNKNOWN = 255  # code of a character that the alphabet does not have
MOST_PAIRED, MOST_DIFFERENT = 15, 7  # characters of words in pairs, and of those that may differ


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
def similar_words(numbers, k, scores, threshold, most):
    """All words whose similarity with a given one is at least a threshold, for each of ``numbers``.

    The similarity is ``sum_i scores[u_i, v_i]``. Returns CSR parts (indptr, words). A search
    letter by letter, cut off where the best of what is left cannot reach the threshold, and after
    ``most`` words.
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
        while depth >= 0 and end <= most:
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


def _ones(_, bits):
    """Number of ones in a word of 64 bits: one instruction."""
    return types.int64(types.uint64), lambda context, builder, signature, words: builder.ctpop(
        words[0]
    )


_popcount: Any = intrinsic(_ones)


@njit(cache=True, **INNER)
def _bit_planes(string, k, size, reverse, out):
    """Write 64 characters from each place on as bits: bit p of ``out[b, j]`` is bit b of place j+p.

    Places begin at ``k - 64``, before the string, so that every word comes to stand at every bit
    below ``65 - k``. The last row of ``out`` has ones where a word of k known characters begins.
    """
    planes, n = out.shape[0] - 1, string.shape[0]
    run = 0
    bits = np.zeros(planes + 1, dtype=np.uint64)
    for j in range(n - 1, k - 65, -1):
        code = 0
        if j >= 0:
            code = int(string[n - 1 - j]) if reverse else int(string[j])
            run = 0 if code == UNKNOWN else run + 1
            code = size - 1 - code if reverse else code
        begins = j >= 0 and run >= k
        for b in range(planes):
            bits[b] = (bits[b] << np.uint64(1)) | np.uint64(code >> b & 1)
        bits[planes] = (bits[planes] << np.uint64(1)) | np.uint64(begins)
        if j <= n - k:
            out[:, j + 64 - k] = bits


@njit(cache=True, **INNER)
def _different(k, word_begins, begins, different, counts):
    """Add to ``counts[d]`` the pairs of words with d < 8 different characters, 64 at a time.

    A one in ``different[j]`` is a character that differs. The number of ones in each window of k
    is a sum of windows of 8, 4, 2 and 1, kept as four words: bit p of ``a0`` to ``a3`` are the
    digits of the number for the window at p, and adders are made of ``&`` and ``^``.
    """
    zero, one = np.uint64(0), np.uint64(1)
    m1, m2, m4, m8 = zero, zero, zero, zero  # which windows k is a sum of
    if k & 1:
        m1 = ~zero
    if k & 2:
        m2 = ~zero
    if k & 4:
        m4 = ~zero
    if k & 8:
        m8 = ~zero
    two, four = np.uint64(2), np.uint64(4)
    after1, after3, after7 = np.uint64(k & 1), np.uint64(k & 3), np.uint64(k & 7)
    n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = 0
    for j in range(different.shape[0]):
        s = different[j]
        a0 = s & m1
        t = s >> one
        s0, s1 = s ^ t, s & t  # windows of 2
        b0, b1 = (s0 >> after1) & m2, (s1 >> after1) & m2
        carry = a0 & b0
        a0, a1 = a0 ^ b0, b1 ^ carry
        t0, t1 = s0 >> two, s1 >> two
        carry, half = s0 & t0, s1 ^ t1
        u0, u1, u2 = s0 ^ t0, half ^ carry, (s1 & t1) | (half & carry)  # windows of 4
        b0, b1, b2 = (u0 >> after3) & m4, (u1 >> after3) & m4, (u2 >> after3) & m4
        carry, half = a0 & b0, a1 ^ b1
        a2 = b2 ^ ((a1 & b1) | (half & carry))
        a0, a1 = a0 ^ b0, half ^ carry
        t0, t1, t2 = u0 >> four, u1 >> four, u2 >> four
        carry, half = u0 & t0, u1 ^ t1
        v0, v1 = u0 ^ t0, half ^ carry  # windows of 8
        carry = (u1 & t1) | (half & carry)
        half = u2 ^ t2
        v2, v3 = half ^ carry, (u2 & t2) | (half & carry)
        b0, b1 = (v0 >> after7) & m8, (v1 >> after7) & m8
        b2, b3 = (v2 >> after7) & m8, (v3 >> after7) & m8
        carry, half = a0 & b0, a1 ^ b1
        a0, b0 = a0 ^ b0, (a1 & b1) | (half & carry)
        a1, half = half ^ carry, a2 ^ b2
        a3 = b3 ^ ((a2 & b2) | (half & b0))
        a2 = half ^ b0
        below8 = word_begins & begins[j] & ~a3
        low, high = below8 & ~a2, below8 & a2
        n0 += _popcount(low & ~a1 & ~a0)
        n1 += _popcount(low & ~a1 & a0)
        n2 += _popcount(low & a1 & ~a0)
        n3 += _popcount(low & a1 & a0)
        n4 += _popcount(high & ~a1 & ~a0)
        n5 += _popcount(high & ~a1 & a0)
        n6 += _popcount(high & a1 & ~a0)
        n7 += _popcount(high & a1 & a0)
    counts += np.array([n0, n1, n2, n3, n4, n5, n6, n7])


@njit(cache=True, nogil=True)
def word_pairs(
    codes, begin, rows, other_codes, other_begin, columns, k, size, both_strands, weights, out
):
    """Write the sum over all pairs of words of ``weights[different characters]`` into ``out``.

    ``weights`` has eight entries; words have up to 15 characters. Words of a row stand in blocks of
    64 bits and meet those of a column at every shift, 65 - k pairs in each operation. With
    ``both_strands`` those of the reverse complement count, too, on both sides.
    """
    planes = 1
    while (1 << planes) < size:
        planes += 1
    strands, step, longest = 1 + both_strands, 65 - k, 0
    n_blocks = np.zeros(rows.shape[0] + 1, dtype=np.int64)
    for i, row in enumerate(rows):
        length = begin[row + 1] - begin[row]
        longest = max(longest, length)
        n_blocks[i + 1] = n_blocks[i] + strands * (-(-max(length - k + 1, 0) // step))
    for column in columns:
        longest = max(longest, other_begin[column + 1] - other_begin[column])
    room = np.empty((planes + 1, longest + 65 - k), dtype=np.uint64)
    different = np.empty(longest + 65 - k, dtype=np.uint64)
    blocks = np.empty((n_blocks[-1], planes + 1), dtype=np.uint64)
    last = 0
    for row in rows:
        string = codes[begin[row] : begin[row + 1]]
        for strand in range(strands):
            _bit_planes(string, k, size, strand == 1, room)
            for place in range(64 - k, string.shape[0] - k + 65 - k, step):
                blocks[last] = room[:, place]
                blocks[last, planes] &= ~np.uint64(0) >> np.uint64(k - 1)
                last += 1
    counts = np.empty(8, dtype=np.int64)
    for j, column in enumerate(columns):
        string = other_codes[other_begin[column] : other_begin[column + 1]]
        _bit_planes(string, k, size, False, room)
        width = max(string.shape[0] - k + 65 - k, 0)
        for i in range(rows.shape[0]):
            counts[:] = 0
            for block in range(n_blocks[i], n_blocks[i + 1]):
                different[:width] = blocks[block, 0] ^ room[0, :width]
                for plane in range(1, planes):
                    word = blocks[block, plane]
                    for place in range(width):
                        different[place] |= word ^ room[plane, place]
                _different(
                    k, blocks[block, planes], room[planes, :width], different[:width], counts
                )
            out[i, j] = strands * (weights * counts).sum()
