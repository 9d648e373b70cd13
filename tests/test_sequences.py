"""Kernels on sequences: their definitions, on tables, in machines and searches, and bad input."""

import gzip
import itertools
import pickle
import time
from math import comb, exp

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import maxmargin
import maxmargin.kernels as kernels
from maxmargin import (
    SVC,
    SVR,
    ExplicitFeatures,
    Gram,
    GridSearchCV,
    KernelRidge,
    LinearSVC,
    OneClassSVM,
    Perceptron,
    read_fasta,
)
from maxmargin.backends.cpu.strings import word_pairs
from maxmargin.gram import Definiteness
from maxmargin.kernels import (
    RBF,
    BagOfWords,
    FunctionKernel,
    GappedKmer,
    Input,
    Kernel,
    Linear,
    LocalAlignment,
    Mismatch,
    Spectrum,
    Subsequence,
    Substitution,
    Validity,
    WeightedDegree,
    check_valid,
    sequence_weights,
)
from maxmargin.kernels.sequences import Alphabet, SequenceKernel, importance
from maxmargin.kernels.sequences.alphabet import PROTEIN
from maxmargin.kernels.sequences.hamming import estimates
from maxmargin.kernels.sequences.subsequence import _Subsequences
from maxmargin.kernels.sequences.substitutions import BLOSUM62
from maxmargin.plotting import (
    LogoDisplay,
    PositionsDisplay,
    WordsDisplay,
    plot_logo,
    plot_positions,
    plot_words,
)
from maxmargin.testing import check_kernel

RANDOM = np.random.default_rng(3)


def strings(letters, n, low, high):
    sizes = RANDOM.integers(low, high + 1, size=n)
    return ["".join(RANDOM.choice(list(letters), size=size)) for size in sizes]


DNA = strings("ACGT", 24, 9, 20)
WINDOWS = strings("ACGT", 24, 15, 15)
PROTEINS = strings(PROTEIN, 24, 6, 14)
TEXTS = [" ".join(strings("abc", 6, 2, 3)) for _ in range(24)]


def name(value):
    return str(value)[:40] if isinstance(value, Kernel | str) else ""


# -- the definitions, word for word ------------------------------------------------------------


def kmers(x, k):
    return [x[i : i + k] for i in range(len(x) - k + 1)]


def distance(u, v):
    return sum(a != b for a, b in zip(u, v, strict=True))


def over_words(k, similarity):
    return lambda x, z: sum(similarity(u, v) for u in kmers(x, k) for v in kmers(z, k))


def mismatch(k, m, letters="ACGT"):
    words = list(map("".join, itertools.product(letters, repeat=k)))

    def phi(x):
        return np.array([sum(distance(u, v) <= m for u in kmers(x, k)) for v in words])

    return lambda x, z: phi(x) @ phi(z)


def substitution(k, threshold):
    def score(u, v):
        return sum(BLOSUM62[PROTEIN.index(a), PROTEIN.index(b)] for a, b in zip(u, v, strict=True))

    def phi(x):
        words = itertools.product(PROTEIN, repeat=k)
        return np.array([sum(score(u, v) >= threshold for u in kmers(x, k)) for v in words])

    return lambda x, z: phi(x) @ phi(z)


def weighted_degree(d, shift):
    def value(x, z):
        total = 0.0
        for j in range(1, d + 1):
            beta = 2 * (d - j + 1) / (d * (d + 1))
            u, v = kmers(x, j), kmers(z, j)
            for s in range(shift + 1):
                for i in range(len(u) - s):
                    total += beta / (2 * (s + 1)) * ((u[i + s] == v[i]) + (u[i] == v[i + s]))
        return total

    return value


def subsequence(k, decay):
    def phi(x):
        features = {}
        for places in itertools.combinations(range(len(x)), k):
            word = "".join(x[i] for i in places)
            span = places[-1] - places[0] + 1
            features[word] = features.get(word, 0.0) + decay**span
        return features

    def value(x, z):
        a, b = phi(x), phi(z)
        return sum(a[u] * b[u] for u in a.keys() & b.keys())

    return value


def alignments(beta, opening, extending):
    """Sum over all sets of aligned pairs, rising in both sequences, with the gaps between."""

    def gap(n):
        return exp(-beta * (opening + extending * (n - 1))) if n else 1.0

    def value(x, z):
        total = 1.0
        for size in range(1, min(len(x), len(z)) + 1):
            for i in itertools.combinations(range(len(x)), size):
                for j in itertools.combinations(range(len(z)), size):
                    term = 1.0
                    for p in range(size):
                        s = BLOSUM62[PROTEIN.index(x[i[p]]), PROTEIN.index(z[j[p]])]
                        term *= exp(beta * s)
                        if p:
                            term *= gap(i[p] - i[p - 1] - 1) * gap(j[p] - j[p - 1] - 1)
                    total += term
        return total

    return value


def bag(x, z):
    return sum(x.split().count(word) * z.split().count(word) for word in set(x.split()))


FORMULAS = [
    (Spectrum(3), over_words(3, lambda u, v: u == v), DNA),
    (Spectrum(2, alphabet="protein"), over_words(2, lambda u, v: u == v), PROTEINS),
    (Spectrum(4, alphabet="latin1"), over_words(4, lambda u, v: u == v), TEXTS),
    (Mismatch(3, 1), mismatch(3, 1), DNA),
    (Mismatch(3, 2), mismatch(3, 2), DNA),
    (Mismatch(2, 0), mismatch(2, 0), DNA),
    (GappedKmer(5, 3), over_words(5, lambda u, v: comb(5 - distance(u, v), 3)), DNA),
    (GappedKmer(4, 4), over_words(4, lambda u, v: u == v), DNA),
    (GappedKmer(8, 5), over_words(8, lambda u, v: comb(8 - distance(u, v), 5)), DNA),  # as pairs
    (GappedKmer(7, 2), over_words(7, lambda u, v: comb(7 - distance(u, v), 2)), DNA),
    (Mismatch(4, 2), mismatch(4, 2), DNA),
    (Substitution(2, 6.0), substitution(2, 6.0), PROTEINS),
    (WeightedDegree(3), weighted_degree(3, 0), WINDOWS),
    (WeightedDegree(4, shift=3), weighted_degree(4, 3), WINDOWS),
    (Subsequence(3, 0.6), subsequence(3, 0.6), DNA),
    (Subsequence(1, 1.0), subsequence(1, 1.0), TEXTS),
    (BagOfWords(), bag, TEXTS),
]


@pytest.mark.parametrize(("kernel", "formula", "data"), FORMULAS, ids=name)
def test_values_are_those_of_the_definition(kernel, formula, data):
    X, Z = data[:9], data[5:16]
    expected = [[formula(x, z) for z in Z] for x in X]
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-10, atol=1e-12)
    if hasattr(kernel, "features"):
        resolved = kernel.resolve(data)
        if resolved.features(X).shape[1] > 1e8:
            return  # scipy counts all columns to transpose a matrix
        product = resolved.features(X) @ resolved.features(Z).T
        np.testing.assert_allclose(product.toarray(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 7, 9, 12, 15])
@pytest.mark.parametrize("alphabet", ["dna", "protein", "AB"])
def test_pairs_of_words_are_counted_wherever_they_are(length, alphabet):
    letters = Alphabet.of(alphabet)
    sizes = [length, length + 1, 40, 64, 65 - length, 66, 130]  # around the edges of 64 bits
    X = ["".join(RANDOM.choice([*letters.letters, "?"], size=n)) for n in sizes]
    X = [x[:20].replace("?", letters.letters[0]) + x[20:] for x in X if len(x) >= length]
    encoded, rows = letters.encode(X, skip_unknown=True), np.arange(len(X))
    weights = RANDOM.random(8)
    out = np.empty((len(X), len(X)))
    word_pairs(*encoded, rows, *encoded, rows, length, letters.size, False, weights, out)
    known = [[u for u in kmers(x, length) if "?" not in u] for x in X]
    for i, j in itertools.product(range(3), range(len(X))):
        apart = [distance(u, v) for u in known[i] for v in known[j]]
        assert out[i, j] == pytest.approx(sum(weights[d] for d in apart if d < 8), rel=1e-12)


def test_estimates_are_those_of_gkm_svm():
    # LS-GKM 0.1.2, gkmmatrix -t 2 -l 10 -k 6 prints these weights, over that of equal words
    kernel = GappedKmer(10, 6, estimate=True)
    words_apart = ["C" * d + "A" * (10 - d) for d in range(6)]
    expected = [1.0, 0.32862833, 0.0881524, 0.01638518, 0.00148956, 0.0]
    np.testing.assert_allclose(kernel(["A" * 10], words_apart)[0], expected, atol=1e-7)
    # the least vector of words that explains what is counted with gaps, where nothing is cut off
    words = list(map("".join, itertools.product("ACGT", repeat=3)))
    counts = GappedKmer(3, 2).features(words).toarray().T
    projection = np.linalg.pinv(counts) @ counts
    weights = np.array(estimates(3, 2, 4)) / 4**3
    apart = np.array([[distance(u, v) for v in words] for u in words])
    cut = np.where(weights[apart] > 0, projection, 0.0)
    np.testing.assert_allclose(cut, weights[apart], atol=1e-12)
    expected = cut @ cut / (cut @ cut)[0, 0]
    np.testing.assert_allclose(GappedKmer(3, 2, estimate=True)(words), expected, atol=1e-12)
    with pytest.raises(ValueError, match="use estimate=False"):
        kernel.features(["A" * 10])
    cut = GappedKmer(10, 6, estimate=True, max_mismatches=3)
    expected = [1.0, 0.32862833, 0.0881524, 0.01638518, 0.0, 0.0]
    np.testing.assert_allclose(cut(["A" * 10], words_apart)[0], expected, atol=1e-7)
    assert kernel.validity is Validity.VALID
    assert cut.validity is Validity.UNPROVEN
    np.testing.assert_array_equal(GappedKmer(3, 1, max_mismatches=0)(words), 3 * np.eye(64))


def test_local_alignment_sums_over_all_alignments():
    X = strings(PROTEIN, 4, 2, 5)
    formula = alignments(0.5, 3.0, 0.7)
    expected = np.array([[formula(x, z) for z in X] for x in X])
    plain = LocalAlignment(beta=0.5, gap_open=3.0, gap_extend=0.7, logarithm=False)
    np.testing.assert_allclose(plain(X), expected, rtol=1e-10)
    logs = clone(plain).set_params(logarithm=True, shift=0.0)
    np.testing.assert_allclose(logs(X), np.log(expected) / 0.5, rtol=1e-10)


def test_long_alignments_do_not_overflow():
    x = "".join(RANDOM.choice(list(PROTEIN), size=900))
    value = LocalAlignment(shift=0.0)([x])[0, 0]
    best = sum(BLOSUM62[PROTEIN.index(a), PROTEIN.index(a)] for a in x)
    assert best < value < best + 2 * 900  # all alignments weigh more than the best one
    with pytest.raises(ValueError, match="infinity"):
        SVC(kernel=LocalAlignment(logarithm=False)).fit([x, x[:5]], [0, 1])


def test_recursions_side_by_side_are_those_of_each_pair():
    X = strings(PROTEIN, 70, 1, 40)  # more than lanes, of all lengths
    for kernel in (LocalAlignment(shift=2.0, beta=1.0), Subsequence(1, 0.9)):
        whole = kernel(X)
        alone = [[kernel([x], [z])[0, 0] for z in X[:3]] for x in X[:40]]
        np.testing.assert_allclose(whole[:40, :3], alone, rtol=1e-13)
        np.testing.assert_allclose(kernel.diag(X), np.diag(whole), rtol=1e-13)


def test_the_shift_mends_the_training_matrix_by_what_it_lacks():
    X = [*strings("ACGT", 40, 2, 5), "ACG", "ACG"]
    bare = LocalAlignment("dna", beta=0.1, gap_open=1.0, gap_extend=0.1, shift=0.0)
    mended = clone(bare).set_params(shift="auto").resolve(X)
    assert bare.validity is Validity.INVALID
    assert not check_valid(bare, X)
    assert check_valid(mended, X)
    assert mended.validity is Validity.UNPROVEN
    assert mended.shift == pytest.approx(-check_valid(bare, X).smallest_eigenvalue, rel=1e-6)
    K, same = bare(X), np.array([[x == z for z in X] for x in X])
    np.testing.assert_allclose(mended(X), K + mended.shift * same, rtol=1e-12)
    y = np.arange(len(X)) % 2
    found = SVC(kernel=mended).fit(X, y).certificate_
    assert found.converged
    assert found.definiteness is Definiteness.COMPUTED
    assert SVC(kernel=bare).fit(X, y).certificate_.definiteness is Definiteness.INDEFINITE


def test_blosum62_has_the_symmetry_and_entries_of_the_published_matrix():
    np.testing.assert_array_equal(BLOSUM62, BLOSUM62.T)
    score = {(a, b): BLOSUM62[i, j] for i, a in enumerate(PROTEIN) for j, b in enumerate(PROTEIN)}
    assert [score[a, a] for a in PROTEIN] == [
        4, 5, 6, 6, 9, 5, 5, 6, 8, 4, 4, 5, 5, 6, 7, 4, 5, 11, 7, 4
    ]  # fmt: skip
    assert score["W", "F"] == 1
    assert score["L", "I"] == score["Y", "H"] == 2
    assert score["C", "E"] == -4
    assert LocalAlignment(logarithm=False).validity is Validity.VALID


# -- the contract of every kernel --------------------------------------------------------------

EXAMPLES = [
    *((kernel, data) for kernel, _, data in FORMULAS),
    (Spectrum(3, both_strands=True), DNA),
    (LocalAlignment(), PROTEINS),
    (LocalAlignment(beta=0.2, logarithm=False), PROTEINS),
    (Subsequence(2).normalized(), DNA),
    (Spectrum(3).normalized(), DNA),
    (0.5 * Spectrum(2) * Spectrum(3).normalized() + Mismatch(4, 1) ** 2 + 1, DNA),
    (Spectrum(20), ["A" * 20, "C" * 22, "G" * 25, "ACGT" * 5, "ACGT" * 6, "AC" * 11, "T" * 20]),
]


@pytest.mark.parametrize(("kernel", "data"), EXAMPLES, ids=name)
def test_contract(kernel, data):
    check_kernel(kernel, data)
    assert kernel.input is Input.SEQUENCES


def test_every_public_kernel_on_sequences_is_among_the_examples():
    public = {getattr(kernels, name) for name in kernels.__all__}
    expected = {k for k in public if isinstance(k, type) and issubclass(k, SequenceKernel)}
    assert expected == {type(kernel) for kernel, _ in EXAMPLES} & expected


@pytest.mark.parametrize(
    ("kernel", "data"),
    [
        (Spectrum(3), DNA),
        (Mismatch(3, 1), DNA),
        (Subsequence(2), DNA),
        (LocalAlignment(), PROTEINS),
    ],
    ids=name,
)
def test_normalized_is_the_cosine(kernel, data):
    kernel = kernel.resolve(data)
    K = kernel(data)
    length = np.sqrt(np.diag(K))
    cosine = kernel.normalized()
    np.testing.assert_allclose(cosine(data), K / np.outer(length, length), rtol=1e-12)
    # words that only one side has count for its length, too
    np.testing.assert_allclose(cosine(data[:3], data[3:]), cosine(data)[:3, 3:], rtol=1e-12)
    np.testing.assert_allclose(cosine.diag(data), 1.0)


def test_normalizing_vectors_too():
    X = RANDOM.normal(size=(6, 3))
    K = (Linear() + 1)(X)
    expected = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    np.testing.assert_allclose((Linear() + 1).normalized()(X), expected)
    with pytest.raises(ValueError, match="positive diagonal"):
        (Linear() - 100).normalized()(X)


def test_both_strands_read_the_reverse_complement():
    pair = str.maketrans("ACGT", "TGCA")
    other = [x.translate(pair)[::-1] for x in DNA]
    for one in (Spectrum(3), Mismatch(3, 1), GappedKmer(4, 2)):
        both = clone(one).set_params(both_strands=True)
        total = (one.features(DNA) + one.features(other)).toarray()
        np.testing.assert_array_equal(both.features(DNA).toarray(), total)
        np.testing.assert_allclose(both(DNA), both(other))


# -- containers, tables, machines --------------------------------------------------------------

CONTAINERS = [
    list,
    tuple,
    np.array,
    lambda x: np.array(x, dtype=object),
    lambda x: np.array(x, dtype=object).reshape(-1, 1),
    lambda x: np.array([s.encode() for s in x]),
    lambda x: [s.encode() for s in x],
    pd.Series,
    pl.Series,
    lambda x: pd.DataFrame({"sequence": x}),
    lambda x: pl.DataFrame({"sequence": x}),
    lambda x: pd.Series(x, dtype="string"),
]


@pytest.mark.parametrize("container", CONTAINERS)
def test_any_container_of_sequences(container):
    y = [x.count("A") > 3 for x in DNA]
    model = SVC(kernel=Spectrum(2)).fit(container(DNA), y)
    expected = SVC(kernel="precomputed").fit(Spectrum(2)(DNA), y)
    values = model.decision_function(container(DNA))
    np.testing.assert_allclose(values, expected.decision_function(Spectrum(2)(DNA)), atol=2e-3)


def test_small_letters_and_skipped_characters():
    np.testing.assert_array_equal(Spectrum(2)(["acgt"], ["ACGT"]), [[3]])
    np.testing.assert_array_equal(Spectrum(2, unknown="skip")(["ACNGT", "ACGT"]), [[2, 2], [2, 3]])
    assert not Spectrum(2, unknown="skip").normalized()(["NNNN", "ACGT"])[0].any()
    np.testing.assert_array_equal(WeightedDegree(1, unknown="skip")(["AN", "AN"]), np.ones((2, 2)))


@pytest.mark.parametrize(
    "kernel",
    [
        WeightedDegree(3, shift=1, unknown="skip"),
        WeightedDegree(2, unknown="skip"),
        Spectrum(2, unknown="skip"),
    ],
    ids=str,
)
def test_sequences_of_which_nothing_is_left_have_values_of_zero(kernel):
    """The values of five sequences without a known character ended in ZeroDivisionError."""
    X, y = ["NNN"] * 5, [0, 1, 0, 1, 0]
    assert not kernel(X).any()
    assert not kernel.diag(X).any()
    assert not kernel(X, ["ACG"]).any()
    model = SVC(kernel=kernel).fit(X, y)
    assert model.certificate_.converged
    assert (model.predict(X) == 0).all()


TABLE = {
    "sequence": DNA,
    "length": [float(len(x)) for x in DNA],
    "gc": [(x.count("G") + x.count("C")) / len(x) for x in DNA],
}


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame(TABLE), pl.DataFrame(TABLE), np.array(list(TABLE.values()), dtype=object).T],
    ids=["pandas", "polars", "objects"],
)
def test_sequences_beside_numbers(table):
    named = hasattr(table, "columns")
    column, numbers = ("sequence", ["length", "gc"]) if named else (0, [1, 2])
    kernel = Spectrum(3).normalized().on(column) * 2 + RBF().on(numbers)
    values = np.column_stack([TABLE["length"], TABLE["gc"]])
    expected = 2 * Spectrum(3).normalized()(DNA) + RBF()(values)
    np.testing.assert_allclose(kernel(table), expected, rtol=1e-12)
    y = np.arange(len(DNA)) % 2
    model = SVC(kernel=kernel, C=10.0).fit(table, y)
    assert model.certificate_.converged
    assert model.n_features_in_ == 3
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(table), model.decision_function(table))
    search = GridSearchCV(SVC(kernel=kernel), {"C": [0.1, 10.0], "kernel__k1__k": [2, 3]}, cv=3)
    assert search.fit(table, y).best_score_ > 0


def test_a_function_of_the_users_beside_a_kernel_on_sequences():
    def same_first(A, B):
        return [[float(str(a)[:1] == str(b)[:1]) for b in B] for a in A]

    both = FunctionKernel(same_first) + Spectrum(2)
    expected = np.array(same_first(DNA, DNA)) + Spectrum(2)(DNA)
    np.testing.assert_allclose(both(DNA), expected)


@pytest.mark.parametrize(
    ("kernel", "data"),
    [(Spectrum(3), DNA), (Subsequence(2).normalized(), DNA), (WeightedDegree(3, 1), WINDOWS)],
    ids=name,
)
def test_every_machine_takes_sequences(kernel, data):
    y = np.array([x.count("A") - x.count("C") for x in data])
    assert SVR(kernel=kernel).fit(data, y).certificate_.converged
    assert len(OneClassSVM(kernel=kernel).fit(data).predict(data)) == len(data)
    assert Perceptron(kernel=kernel, variant="pocket").fit(data, y > 0).score(data, y > 0) > 0.5
    model = SVC(kernel=kernel, probability=True).fit(data, y > 0)
    assert model.predict_proba(data).shape == (len(data), 2)
    assert set(model.support_vectors_) <= set(data)


def test_cross_validation_pipelines_and_searches():
    y = np.array([x.count("A") > 3 for x in DNA])
    model = SVC(kernel=Spectrum(2).normalized(), tol=1e-8)
    assert len(cross_val_score(model, DNA, y, cv=3)) == 3
    assert Pipeline([("svc", model)]).fit(DNA, y).score(DNA, y) > 0.5
    upper = FunctionTransformer(lambda X: [x.lower() for x in X])
    grid = {"svc__C": [0.1, 1.0, 10.0], "svc__kernel__k": [1, 2]}
    whole = GridSearchCV(make_pipeline(upper, model), grid, cv=3).fit(DNA, y)
    parts = GridSearchCV(model, {"C": [0.1, 1.0, 10.0], "kernel__k": [1, 2]}, cv=3).fit(DNA, y)
    assert whole.sharing_.shared.all(), whole.sharing_
    assert parts.sharing_.shared.all(), parts.sharing_
    np.testing.assert_allclose(
        whole.cv_results_["mean_test_score"], parts.cv_results_["mean_test_score"]
    )


def test_a_candidate_that_refuses_the_sequences_has_no_score():
    search = GridSearchCV(SVC(kernel=Spectrum(2)), {"kernel__k": [2, 19]}, cv=3)
    with (
        pytest.warns(FitFailedWarning, match="fewer than 19"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search.fit(DNA, np.arange(24) % 2)
    assert search.best_params_ == {"kernel__k": 2}
    assert np.isnan(search.cv_results_["mean_test_score"][1])


def test_a_fit_compares_each_pair_of_strings_once(monkeypatch):
    asked = []

    def counting(self, left, rows, right, columns):
        asked.append(len(rows))
        return pairs(self, left, rows, right, columns)

    pairs = _Subsequences.pairs
    monkeypatch.setattr(_Subsequences, "pairs", counting)
    X = strings("AB", 300, 5, 9)
    SVC(kernel=Subsequence(2), n_jobs=1).fit(X, np.arange(300) % 2)
    assert sum(asked) < 300 * 300  # half of the matrix, the tiles on its diagonal, the diagonal
    few = Gram.of(X, Subsequence(2), memory=1000)  # no room: rows when they are asked for
    np.testing.assert_allclose(few.rows([3]), Subsequence(2)(X)[[3]])


def test_features_written_out():
    kernel = Spectrum(2).normalized() + 2 * Spectrum(1)
    features = ExplicitFeatures(kernel).fit_transform(DNA)
    np.testing.assert_allclose(features @ features.T, kernel(DNA), atol=1e-10)


def test_linear_machines_learn_the_same_from_the_features():
    y = np.array([x.count("A") > 3 for x in DNA])
    kernel = Mismatch(4, 1)
    dual = SVC(kernel=kernel, tol=1e-8, C=0.1, fit_intercept=False).fit(DNA, y)
    features = FunctionTransformer(kernel.features)
    linear = LinearSVC(loss="hinge", C=0.1, tol=1e-8, fit_intercept=False)
    primal = make_pipeline(features, linear).fit(DNA, y)
    np.testing.assert_allclose(
        primal.decision_function(DNA), dual.decision_function(DNA), atol=1e-5
    )


def test_on_a_gpu_as_on_the_cpu():
    pytest.importorskip("triton")
    y = np.arange(len(DNA)) % 2
    table = pd.DataFrame(TABLE)
    # pairs of words on the CPU, features on the GPU
    kernel = GappedKmer(7, 4).normalized().on("sequence") + RBF().on(["length"])
    cpu = SVC(kernel=kernel, tol=1e-8).fit(table[:20], y[:20])
    gpu = SVC(kernel=kernel, tol=1e-8, device="cuda").fit(table[:20], y[:20])
    assert gpu.device_.on_gpu
    np.testing.assert_allclose(
        gpu.decision_function(table), cpu.decision_function(table), atol=1e-5
    )
    with pytest.raises(RuntimeError, match="recursion over two strings"):
        SVC(kernel=Subsequence(2), device="cuda").fit(DNA, y)


# -- what a machine goes by --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "data"),
    [
        (Spectrum(3), DNA),
        (Spectrum(3, both_strands=True).normalized(), DNA),
        (3 * Mismatch(4, 1).normalized() + 1, DNA),
        (GappedKmer(5, 3).normalized(), DNA),
        (Substitution(2, 7.0), PROTEINS),
        (WeightedDegree(3, shift=2).normalized(), WINDOWS),
        (BagOfWords(ngram=2), TEXTS),
    ],
    ids=name,
)
def test_parts_of_places_sum_to_the_decision(kernel, data):
    model = SVC(kernel=kernel).fit(data[:16], np.arange(16) % 2)
    found = sequence_weights(model)
    parts = found.at(data)
    constant = model.dual_coef_.sum() * ("+ 1" in str(kernel))
    total = [part.sum() + model.intercept_[0] + constant for part in parts]
    np.testing.assert_allclose(total, model.decision_function(data), atol=1e-8)
    if not isinstance(kernel, BagOfWords):
        assert [len(part) for part in parts] == [len(x) for x in data]
    assert len(found.top(5)) == 5


def test_parts_of_one_kernel_among_others():
    table, y = pd.DataFrame(TABLE), np.arange(24) % 2
    kernel = 2 * Spectrum(3).normalized().on("sequence") + RBF().on(["length", "gc"])
    model = SVC(kernel=kernel).fit(table, y)
    values = np.column_stack([TABLE["length"], TABLE["gc"]])
    others = RBF().resolve(values)(values, values[model.support_]) @ model.dual_coef_[0]
    parts = np.array([part.sum() for part in sequence_weights(model).at(table)])
    expected = model.decision_function(table) - others - model.intercept_[0]
    np.testing.assert_allclose(parts, expected, atol=1e-8)


def test_a_planted_word_is_found_where_it_is():
    X = [x[:4] + "TATA" + x[8:] if i % 2 else x for i, x in enumerate(WINDOWS)]
    model = SVC(kernel=WeightedDegree(4), C=10).fit(X, np.arange(len(X)) % 2)
    found = sequence_weights(model)
    assert found.top(1)[0][0].split(":")[0] in "4567"
    assert 4 <= np.argmax(np.mean(found.at(X[1::2]), axis=0)) <= 7


@pytest.mark.filterwarnings("ignore:.* still on the wrong side")
def test_machines_of_every_kind_have_weights(monkeypatch):
    monkeypatch.setattr(importance, "_AT_ONCE", 5)  # support vectors in several parts
    y = np.arange(24) % 2
    for machine in (KernelRidge, Perceptron, SVR):
        model = machine(kernel=Spectrum(2)).fit(DNA, y)
        values = getattr(model, "decision_function", model.predict)(DNA)
        parts = np.array([part.sum() for part in sequence_weights(model).at(DNA)])
        np.testing.assert_allclose(parts + getattr(model, "intercept_", 0.0), values, atol=1e-8)


def test_pictures_of_words_and_places():
    y = np.array([x.count("A") > 3 for x in DNA])
    model = make_pipeline(SVC(kernel=Spectrum(3))).fit(DNA, y)
    ax = plot_words(model, count=7)
    display = WordsDisplay.from_estimator(model, count=7)
    assert [bar.get_width() for bar in ax.patches] == display.weights.tolist()
    assert [text.get_text() for text in ax.get_yticklabels()] == display.words
    assert sorted(map(abs, display.weights)) == sorted(
        abs(weight) for _, weight in sequence_weights(model[-1]).top(7)
    )
    assert (np.diff(display.weights) <= 0).all()
    assert "below 0 for False, above for True" in ax.get_xlabel()
    ax = plot_positions(model, DNA[:5])
    drawn = ax.images[0].get_array()
    assert drawn.shape == (5, max(map(len, DNA[:5])))
    display = PositionsDisplay.from_estimator(model, DNA[:5])
    np.testing.assert_array_equal(display.values, drawn)
    letters = [text.get_text() for text in display.ax_.texts]
    assert "".join(letters) == "".join(display.texts) == "".join(DNA[:5])
    values = model.decision_function(DNA[:5]) - model[-1].intercept_
    np.testing.assert_allclose(drawn.sum(axis=1), values, atol=1e-8)
    with pytest.raises(ValueError, match="up to 60"):
        plot_positions(model, DNA * 3)


def test_a_logo_is_as_high_as_the_value():
    X = [x[:4] + "TATA" + x[8:] if i % 2 else x for i, x in enumerate(WINDOWS)]
    model = SVC(kernel=WeightedDegree(4), C=10).fit(X, np.arange(len(X)) % 2)
    ax = plot_logo(model, X[1::2])
    boxes = [patch.get_path().get_extents() for patch in ax.patches]
    signed = sum(box.height * (1 if box.y1 > 1e-9 else -1) for box in boxes)
    values = model.decision_function(X[1::2]) - model.intercept_
    assert signed == pytest.approx(values.mean(), abs=1e-6)
    display = LogoDisplay.from_estimator(model, X[1::2])
    assert display.heights.sum() == pytest.approx(values.mean(), abs=1e-6)
    best = np.unravel_index(np.argmax(np.abs(display.heights)), display.heights.shape)
    assert display.letters[best[0]] == "TATA"[best[1] - 4]
    assert len(ax.patches) == np.count_nonzero(display.heights)
    highest = boxes[int(np.argmax([box.height for box in boxes]))]
    assert 4 <= (highest.x0 + highest.x1) / 2 < 8
    with pytest.raises(ValueError, match="one length"):
        plot_logo(SVC(kernel=Spectrum(2)).fit(DNA, np.arange(24) % 2), DNA)


def test_weights_only_where_there_are_some():
    y = np.arange(24)
    with pytest.raises(ValueError, match="have no weights of their own"):
        sequence_weights(SVC(kernel=Subsequence(2)).fit(DNA, y % 2))
    with pytest.raises(ValueError, match="several classes"):
        sequence_weights(SVC(kernel=Spectrum(2)).fit(DNA, y % 3))
    with pytest.raises(TypeError, match="fit it first"):
        sequence_weights(SVC(kernel=Spectrum(2)))


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "X", "message"),
    [
        (Spectrum(3), ["ACGT", "AC", ""], r"rows 1, 2 have fewer than 3 characters.*drop them"),
        (Spectrum(3), ["ACGT", ""], "row 1 are empty: drop them"),
        (Spectrum(3), [], "0 sample"),
        (Spectrum(3), {"ACGT", "ACGG"}, "which row: pass a list"),
        (Mismatch(20, 5), ["A" * 20, "C" * 20], "4,192,468 features of each"),
        (Substitution(8, -100.0), ["MKVLAAGGMK", "MKVLAAGGMR"], "a larger threshold"),
        (Mismatch(5, 1), ["ACGT", "ACGTA"], "row 0 have fewer than 5"),
        (Subsequence(5), ["ACGT", "ACGTA"], "row 0 have fewer than 5"),
        (LocalAlignment(), ["MKV", ""], "empty"),
        (
            Spectrum(2),
            ["ACGT", "ACNRA"],
            r"2 characters outside .* row 1: 'N', 'R'.*unknown='skip'",
        ),
        (Spectrum(2), ["ACGT", "ACδT"], r"outside .* row 1: 'δ'"),
        (LocalAlignment(), ["MKV", "MXJ"], "'J', 'X'"),
        (Spectrum(2), ["ACGT", None], "row 1 is None, of type NoneType"),
        (Spectrum(2), ["ACGT", float("nan")], "row 1 is nan, of type float"),
        (Spectrum(2), [[1.0], [2.0]], "row 0 is 1.0, of type float"),
        (Spectrum(2), "ACGT", "single sequence"),
        (Spectrum(2), [["ACGT", "A"], ["ACGT", "A"]], r"2 columns.*\.on\("),
        (WeightedDegree(3), ["ACGTA", "ACGT"], "one length, here 5; row 1"),
        (Spectrum(2).on("sequence"), ["ACGT", "ACGT"], "single column of sequences"),
        (Spectrum(2) + RBF(), ["ACGT", "ACGT"], r"compares numbers, and X holds 'ACGT'.*\.on"),
        (Spectrum(2).on(0) + RBF().on(1), [["AC", 1.0], ["AC", np.nan]], "NaN"),
    ],
    ids=name,
)
def test_bad_sequences_are_refused_with_advice(kernel, X, message):
    for ask in (lambda: SVC(kernel=kernel).fit(X, [0, 1, 0][: len(X)]), lambda: kernel(X)):
        with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
            ask()


@pytest.mark.parametrize("estimator", [SVC(), KernelRidge(kernel="rbf"), Perceptron(kernel="rbf")])
def test_kernels_of_numbers_refuse_strings_with_advice(estimator):
    name = type(estimator).__name__
    with pytest.raises(ValueError, match=rf"compares numbers.*{name}\(kernel=Spectrum\(3\)\)"):
        estimator.fit(["ACGT", "ACGA", "TTTT"], [0, 1, 0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Spectrum(0),
        lambda: Spectrum(2.5),
        lambda: Spectrum(40),
        lambda: Spectrum(2, alphabet="AA"),
        lambda: Spectrum(2, unknown="ignore"),
        lambda: Spectrum(2, alphabet="protein", both_strands=True),
        lambda: Mismatch(3, 3),
        lambda: Mismatch(3, -1),
        lambda: GappedKmer(3, 4),
        lambda: GappedKmer(16, 10, estimate=True),
        lambda: GappedKmer(15, 3, estimate=True),
        lambda: GappedKmer(6, 3, max_mismatches=-1),
        lambda: Substitution(3, matrix="pam"),
        lambda: Substitution(3, matrix={("A", "C"): 1.0}),
        lambda: WeightedDegree(0),
        lambda: WeightedDegree(2, shift=-1),
        lambda: Subsequence(2, 0.0),
        lambda: Subsequence(2, 1.5),
        lambda: LocalAlignment(beta=0.0),
        lambda: LocalAlignment(shift="much"),
        lambda: LocalAlignment(gap_open=-1.0),
        lambda: BagOfWords(n_features=2**40),
        lambda: Spectrum().set_params(k=0)(["ACGT"]),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(ValueError, match=r"must|needs?|below|more than|agree|both_strands"):
        make()


def test_new_sequences_must_be_like_the_old():
    model = SVC(kernel=WeightedDegree(3)).fit(WINDOWS, np.arange(len(WINDOWS)) % 2)
    with pytest.raises(ValueError, match="one length, here 15; row 0"):
        model.predict(["ACGT"])
    table = np.array(list(TABLE.values()), dtype=object).T
    table = SVC(kernel=Spectrum(2).on(0)).fit(table, np.arange(24) % 2)
    with pytest.raises(ValueError, match="features"):
        table.predict(DNA)


def test_fasta(tmp_path):
    text = "\ufeff>one of thém\nACGT\nAC GT\n\n;a remark\n>two\r\nTTTT\n>two\rA\x0bC"
    plain, packed = tmp_path / "a.fa", tmp_path / "a.fa.gz"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed, str(plain)):
        names, sequences = read_fasta(path)
        assert names == ["one of thém", "two", "two"]
        assert sequences == ["ACGTACGT", "TTTT", "AC"]
    for content, message in [
        (b"ACGT\n", "line 1 is 'ACGT'"),
        (b"", "no sequence"),
        (b">one\n>two\nAC\n", "'one' has no sequence"),
        (gzip.compress(text.encode())[:-12], "gzip"),
        (b">one\n\xff\xfe", "cannot be read"),
    ]:
        plain.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_fasta(plain)
    assert maxmargin.read_fasta is read_fasta


@pytest.mark.parametrize("kernel", [Subsequence(), LocalAlignment()], ids=str)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_time_limit_counts_inside_the_values(kernel, n_jobs):
    """It was heard after all of the values: 43 s for 400 sequences of 300 characters."""
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(list("ACDEFGHIKL"), 300)) for _ in range(200)]
    SVC(kernel=kernel).fit(texts[:4], [0, 1, 0, 1])  # compiles
    before = time.monotonic()
    with pytest.raises(TimeoutError, match=r"time_limit=0.05 s was over before .*200 sequences"):
        SVC(kernel=kernel, time_limit=0.05, n_jobs=n_jobs).fit(texts, np.arange(200) % 2)
    assert time.monotonic() - before < 1.0
    there = SVC(kernel=kernel, time_limit=60.0, n_jobs=n_jobs).fit(texts[:8], np.arange(8) % 2)
    assert there.certificate_.converged
