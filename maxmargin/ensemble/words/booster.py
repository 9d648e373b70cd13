"""Boosted words: a text classifier made of stumps, each of which looks for one word.

AdaBoost.MH keeps a weight for every document and label. In each round it takes the word whose
stump separates best, by these weights, the documents that have a label from those that do not, and
raises the weights of what the stump gets wrong. The value of a label is the sum over all rounds.

Reference: seed 000; Schapire and Singer, BoosTexter: a boosting-based system for text
categorization, Machine Learning 39, 2000.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_samples

from maxmargin.ensemble.words.classifier import WordClassifier, linear_of, values_of
from maxmargin.ensemble.words.documents import READING, as_documents, vectorizer_of, word_sets
from maxmargin.ensemble.words.labels import ONE, LabelReading, form_of
from maxmargin.ensemble.words.rounds import KINDS, LabelledWords, Stumps, WordRounds
from maxmargin.ensemble.words.table import WordTable
from maxmargin.ensemble.words.thresholds import best_threshold
from maxmargin.ensemble.words.weights import LabelSets
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.warn import warn
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solvers.driver import Watch


class WordStumpBooster(WordClassifier):
    """A text classifier made of words: AdaBoost.MH over stumps that each look for one (BoosTexter).

    With ``Y(i, l) = +1`` where document i has label l and -1 where not, a round takes the word with
    the least

        Z = sum_il D(i, l) exp(-Y(i, l) h(i, l)),      D <- D exp(-Y h) / Z

    where the stump h says one thing of documents that have the word and another of those that do
    not, for each label. ``f(x, l)`` is the sum of h over the rounds, and the product of all Z is a
    bound on the Hamming loss, the share of the pairs on which the sign of f is wrong.

    X are documents (a list, an array or a column of str), which ``CountVectorizer`` or a vectorizer
    of your own reads, or counts of words, sparse or dense. Only whether a word is there matters.
    y has a label for each document, or several (an indicator matrix, or lists of labels).

    Parameters
    ----------
    n_estimators : int, default=500
        Rounds.
    stump : {"real", "abstaining", "discrete"}, default="real"
        What a stump says: ``1/2 log((W+ + eps) / (W- + eps))`` by the weights of the documents with
        and without a label, on its side; the same where the word is and nothing where it is not; or
        the sign of it, times one factor for the whole round.
    smoothing : float, optional
        ``eps``; by default 1 / (number of documents, by weight, times number of labels).
    ngram_range : tuple (min_n, max_n), default=(1, 1)
        Lengths of the phrases that count as words: (1, 2) for words and pairs of neighbours. This
        and the next six are those of ``CountVectorizer``.
    lowercase : bool, default=True
    token_pattern : str, default=r"(?u)\\b\\w\\w+\\b"
        What is a word.
    stop_words : {"english"}, list or None, default=None
    min_df, max_df : float or int, default=1 and 1.0
        Documents (int), or the share of them (float), that a word must or may be in.
    max_features : int, optional
        Keep only so many words, the most frequent.
    vectorizer : transformer, optional
        Reads the documents in place of ``CountVectorizer``; fitted on a copy.
    thresholds : {"f1"}, float or array-like of shape (n_labels,), default=0.0
        Value above which a document gets a label. ``"f1"``: for each label the one with the best F1
        on documents left out, in ``cv`` folds, or zero where even that F1 is below 0.3. Where a
        document has one of three labels or more, the largest value decides, and there are none.
    cv : int or splitter, default=3
        Folds for ``thresholds="f1"``; a number of them is drawn at random.
    random_state : int, RandomState or None, default=0
        Of these folds; nothing else is random.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use. The answer is the same.
    warm_start : bool, default=False
        Go on from the rounds of the last fit, up to ``n_estimators``, with its vocabulary.
    verbose : bool or int, default=False
        Show a progress bar (by tqdm if it is installed).
    time_limit : float, optional
        Seconds after which the fit stops where it is, the first round made.
    callback : callable, optional
        Called some times a second with a :class:`~maxmargin.progress.Progress`; stops the fit by
        returning True.
    trace : bool or Trace, default=False
        Record every round in ``trace_``: ``objective`` is the bound, ``working_set`` the word,
        ``variables`` what it says where it is absent and present.

    Attributes
    ----------
    words_ : WordTable
        The words, round by round: what each says where it is and where it is not, and Z.
    Z_ : float array of shape (n_rounds,)
    bound_ : float array of shape (n_rounds,)
        The product of Z up to each round, which the Hamming loss is not above.
    hamming_loss_ : float array of shape (n_rounds,)
        On the training documents, by weight, after each round.
    D_ : float array of shape (n_samples, n_labels)
        The distribution after the last round: what is still hard is heavy.
    intercept_ : float array of shape (n_labels,)
        Value of a document that has none of the words found.
    thresholds_ : float array of shape (n_labels,)
    classes_ : array of shape (n_classes,)
    vectorizer_ : transformer
        Which reads documents; not there where X were counts.
    n_iter_ : int
        Rounds made.
    status_ : Status
        ``"completed"``: all rounds were made; ``"no_improvement"``: no word lowers the bound any
        more; or why the fit has ended early.
    n_features_in_, feature_names_in_
        Of counts, as in scikit-learn.

    See Also
    --------
    maxmargin.plotting.plot_boosted_words : the words as a picture.
    maxmargin.LinearSVC : with tf-idf, the large-margin rule on the same words.

    Notes
    -----
    Of two labels that exclude each other only the second has values: those of the first are their
    negatives. ``f`` is linear in the presence of words: ``words_.weights(label)`` are the weights.
    There is no ``predict_proba``: 1 / (1 + exp(-2 f)) is far too sure after many rounds. For one
    label a document, ``sklearn.calibration.CalibratedClassifierCV`` makes honest ones.

    References
    ----------
    Schapire and Singer, Machine Learning 39, 2000; and 37, 1999.

    Examples
    --------
    >>> from maxmargin.ensemble import WordStumpBooster
    >>> documents = ["corn and wheat", "wheat prices", "oil prices", "crude oil", "oil for corn"]
    >>> y = [["grain"], ["grain"], ["energy"], ["energy"], ["energy", "grain"]]
    >>> model = WordStumpBooster(n_estimators=10).fit(documents, y)
    >>> model.words_[0].word, model.predict(["an oil price", "wheat", "corn oil"])
    ('oil', [('energy',), ('grain',), ('energy', 'grain')])
    >>> bool((model.hamming_loss_ <= model.bound_).all())
    True
    """

    _parameter_constraints: dict = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "stump": [StrOptions(set(KINDS))],
        "smoothing": [POSITIVE, None],
        **{name: CountVectorizer._parameter_constraints[name] for name in READING},
        "vectorizer": [HasMethods(["fit_transform", "transform"]), None],
        "thresholds": [StrOptions({"f1"}), "array-like", Real],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
        **WATCHED,
    }
    Z_: np.ndarray
    bound_: np.ndarray
    hamming_loss_: np.ndarray
    n_iter_: int

    def __init__(
        self,
        n_estimators: int = 500,
        *,
        stump: str = "real",
        smoothing: float | None = None,
        ngram_range: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        token_pattern: str = READING["token_pattern"],  # type: ignore[assignment]
        stop_words: Any = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        vectorizer: Any = None,
        thresholds: Any = 0.0,
        cv: Any = 3,
        random_state: Any = 0,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.n_estimators = n_estimators
        self.stump = stump
        self.smoothing = smoothing
        self.ngram_range = ngram_range
        self.lowercase = lowercase
        self.token_pattern = token_pattern
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.vectorizer = vectorizer
        self.thresholds = thresholds
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> WordStumpBooster:
        """Find the words.

        Parameters
        ----------
        X : documents of shape (n_samples,), or counts of shape (n_samples, n_words)
            A list, array or column of str; or an array or sparse matrix of numbers.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), or list of collections
            Labels, an indicator matrix, or the labels of each document.
        sample_weight : array-like of shape (n_samples,), optional
            How many documents each stands for.

        Returns
        -------
        self : WordStumpBooster
        """
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        before = self._before()
        rows, y = self._read_training(X, y, before)
        reading, truth = LabelReading.of(y)
        check_consistent_length(rows, truth)
        weight = self._validated_weight(sample_weight, rows)
        values = self._continued(before, reading, rows)
        given = self._given_thresholds(reading)
        self._refuse_and_warn(rows, truth, weight, reading)
        self._labels, self.classes_ = reading, reading.classes
        folds = self._folds(truth, reading) if given is None else []
        with self._watched(1 + len(folds)) as monitor:
            rounds = self.n_estimators - (len(before) if before is not None else 0)
            problem = LabelledWords(rows, LabelSets.of(truth), weight, values)
            found = self._solved(problem, rounds, monitor)
            self._keep(found, before, rows.shape[1])
            self.status_, tuned = found.status, given
            if folds:
                tuned = self._tuned(rows, truth, weight, folds, monitor)
                if tuned is None:
                    self.status_ = monitor.stopped() or found.status
            self.thresholds_ = np.zeros(truth.shape[1]) if tuned is None else tuned
            monitor.end(f"{self.status_}: {self.n_iter_} rounds", not self.status_.stopped)
        if not self.status_.finished:
            said = {**self.get_params(deep=False), "rounds": self.n_iter_}
            advice = self.status_.advice_for("boosting").format(**said)
            zero = " The thresholds are zero: their folds were not finished."
            warn(advice + (zero if tuned is None else ""))
        return self

    # -- reading -------------------------------------------------------------------------------

    def _read_training(self, X: Any, y: Any, before: WordTable | None) -> tuple[Any, Any]:
        """Read documents or counts, as sets of words, and check labels that are one column."""
        if not self._reads(X):
            if form_of(y) == ONE:
                X, y = self._validated(X, y)
            else:
                X, _ = self._validated(X, np.zeros(_num_samples(X)))
            self.__dict__.pop("vectorizer_", None)
            return word_sets(X), y
        vectorizer = self.vectorizer_ if before is not None else vectorizer_of(self)
        X = as_documents(X) if self.vectorizer is None else X
        check_consistent_length(X, y if hasattr(y, "shape") else list(y))
        counts = vectorizer.transform(X) if before is not None else vectorizer.fit_transform(X)
        self.vectorizer_ = vectorizer
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        return word_sets(counts), y

    def _refuse_and_warn(
        self, rows: Any, truth: np.ndarray, weight: np.ndarray, reading: LabelReading
    ) -> None:
        """Refuse documents without any word; say which labels have nothing to be learned."""
        if not rows.nnz:
            raise ValueError(
                "No document has a word: all counts are zero, so that there is nothing to learn."
            )
        if not reading.several:
            return
        share = weight @ truth / weight.sum()
        for held, word, end in ((share == 0, "no", "never"), (share >= 1, "every", "always")):
            if held.any():
                names = ", ".join(map(repr, reading.names[held][:5].tolist()))
                more = f" and {held.sum() - 5} more" if held.sum() > 5 else ""
                warn(
                    f"Label(s) {names}{more}: {word} training document has them, and they are "
                    f"{end} predicted.",
                    UserWarning,
                )

    # -- rounds --------------------------------------------------------------------------------

    def _before(self) -> WordTable | None:
        """Rounds to go on from."""
        if not (self.warm_start and hasattr(self, "words_")):
            return None
        if self.n_estimators < len(self.words_):
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to the "
                f"{len(self.words_)} rounds there are when warm_start=True."
            )
        return self.words_

    def _continued(self, before: WordTable | None, reading: LabelReading, rows: Any) -> Any:
        """Return the values that the rounds start from; None for zero."""
        if before is None:
            return None
        same = self._labels.form == reading.form and np.array_equal(self.classes_, reading.classes)
        if not same or rows.shape[1] != self._n_words:
            raise ValueError(
                f"warm_start=True goes on with the labels {self.classes_.tolist()} and the "
                f"{self._n_words} words of the last fit; these are others. Fit with "
                "warm_start=False."
            )
        return self._values_of(rows)

    def _solved(
        self, problem: LabelledWords, rounds: int, monitor: Monitor, number: int = 0
    ) -> Stumps:
        """Make some rounds; of none, the start."""
        k = problem.sets.count
        eps = self.smoothing or 1.0 / (problem.weight.sum() * k)
        workers = self._workers(problem.rows.nnz * k)
        watch = Watch(monitor=ProblemMonitor(monitor, number), workers=workers)
        found = WordRounds(rounds, self.stump, eps).solve(problem, watch)
        monitor.finished()
        return found

    def _keep(self, found: Stumps, before: WordTable | None, n_words: int) -> None:
        """Set what the rounds have found, after those there were."""
        self._n_words = n_words
        words = self._names()[found.words]
        table = WordTable(
            words, found.words, self._labels.names, found.present, found.absent, found.Z
        )
        bound, losses = found.start * np.cumprod(found.Z), found.losses
        if before is not None:
            table = before.followed_by(table)
            bound = np.concatenate([self.bound_, bound])
            losses = np.concatenate([self.hamming_loss_, losses])
        self.words_, self.Z_, self.bound_, self.hamming_loss_ = table, table.Z, bound, losses
        self.D_, self.n_iter_ = found.D, len(table)
        self.intercept_ = table.absent.sum(axis=0)
        self._columns, self._weights = linear_of(table.columns, table)

    # -- thresholds ----------------------------------------------------------------------------

    def _given_thresholds(self, reading: LabelReading) -> np.ndarray | None:
        """Return thresholds that are numbers, one for each label; None where folds say them."""
        k, tuned = len(reading.names), isinstance(self.thresholds, str)
        numbers = np.zeros(k) if tuned else np.asarray(self.thresholds, dtype=np.float64)
        if numbers.shape not in ((), (k,)) or not np.isfinite(numbers).all():
            raise ValueError(
                f"thresholds are 'f1', a number or one for each of {k} labels, all finite; got "
                f"{self.thresholds!r}."
            )
        if not reading.several and k > 1 and (tuned or numbers.any()):
            raise ValueError(
                f"Each document has one of {k} labels, and gets the one with the largest value: "
                "leave thresholds=0.0, or give y as an indicator matrix or as lists of labels."
            )
        return None if tuned else np.broadcast_to(numbers, (k,)).copy()

    def _folds(self, truth: np.ndarray, reading: LabelReading) -> list:
        """Draw the folds that thresholds are tuned on."""
        cv = self.cv
        if isinstance(cv, Integral):
            kind = KFold if reading.several else StratifiedKFold
            cv = kind(int(cv), shuffle=True, random_state=self.random_state)
        target = truth.astype(int) if reading.several else truth[:, 0]
        return list(check_cv(cv).split(np.zeros(len(truth)), target))

    def _tuned(
        self, rows: Any, truth: np.ndarray, weight: np.ndarray, folds: list, monitor: Monitor
    ) -> np.ndarray | None:
        """Thresholds with the best F1 on documents left out; None where someone has stopped it."""
        left_out = np.full(truth.shape, np.nan)
        for number, (inside, outside) in enumerate(folds, start=1):
            if monitor.stopped():
                return None
            if not weight[inside].any():
                raise ValueError("A fold of cv has no document with a positive weight to learn of.")
            part = LabelledWords(rows[inside], LabelSets.of(truth[inside]), weight[inside])
            found = self._solved(part, self.n_estimators, monitor, number)
            if monitor.stopped():
                return None
            left_out[outside] = values_of(
                rows[outside], *linear_of(found.words, found), found.absent.sum(axis=0)
            )
        seen = ~np.isnan(left_out).any(axis=1)
        columns = zip(truth[seen].T, left_out[seen].T, strict=True)
        return np.array([best_threshold(*column) for column in columns])
