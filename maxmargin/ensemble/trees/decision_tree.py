"""Decision trees: one test of one column at each node.

How other learners of this package use them, with columns that are coded once:

    columns = BinnedColumns.of(X, max_bins=255, workers=workers)
    tree = DecisionTreeClassifier(max_depth=1)
    grower = tree._grower(columns, index, classes)    # of regressors: tree._grower(columns, y)
    for each round:
        tree = clone(prototype)._grown(grower, weight, seed)
        tree.training_leaves_   # (n,) node of each row of positive weight, -1 of the others
        tree.tree_.values_at(leaves)                  # (len(leaves), n_classes): shares at leaves
        tree.tree_.apply_binned(columns, rows)        # leaves of any rows of these columns

A weight of zero leaves a row out, whole numbers are replicates. ``tree._fit_binned(columns, ...)``
does both steps. A grower keeps its room from tree to tree and belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context, clone
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from maxmargin.ensemble.trees.base import (
    CLASS_CRITERIA,
    CLASS_LIMITS,
    LIMITS,
    VALUE_CRITERIA,
    VALUE_LIMITS,
    ClassLearner,
    TreeLearner,
    ValueLearner,
    criterion_of,
    seeds,
)
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.export import decision_tree_of
from maxmargin.ensemble.trees.growth import (
    Grower,
    Target,
    count_of_features,
    never,
    rules_of,
)
from maxmargin.ensemble.trees.pruning import pruning_order, reduced
from maxmargin.ensemble.trees.replicates import TreeReplicates
from maxmargin.ensemble.trees.tree import Tree
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.warn import warn
from maxmargin.progress import Progress
from maxmargin.solution import Status


class _DecisionTree(TreeLearner):
    """A tree: growth, leaves, importances."""

    tree_: Tree
    status_: Status
    training_leaves_: np.ndarray
    splitter: str
    max_features: Any
    random_state: Any
    max_bins: int | None

    _parameter_constraints: dict = {**LIMITS, "splitter": [StrOptions({"best", "random"})]}

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the tree.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self : object
        """
        X, target, weight = self._read(X, y, sample_weight)
        count_of_features(self.max_features, X.shape[1])
        with self._watched() as monitor:
            columns = BinnedColumns.of(X, self.max_bins, self._workers(X.shape[0] * X.shape[1]))

            def stopped() -> Any:
                monitor.report(
                    lambda: Progress(0, "DecisionTree", 0, 1.0, 1.0, words="the tree grows")
                )
                return monitor.stopped()

            self._grown(Grower(columns, target), weight, seeds(self.random_state, 1)[0], stopped)
            self.status_ = monitor.stopped() or Status.COMPLETED
        del self.training_leaves_  # as many as rows; who grows trees from columns asks for them
        if self.status_.stopped:
            warn(self.status_.advice_for("tree").format(time_limit=self.time_limit or 0.0))
        return self

    def _grown(
        self,
        grower: Grower,
        weight: np.ndarray | None,
        seed: int,
        stopped: Callable[[], Any] = never,
    ) -> Any:
        """Grow from columns that are coded, with a grower of :meth:`_grower`; returns the tree."""
        columns = grower.columns
        total = float(grower.target.n_rows if weight is None else weight.sum())
        rules = rules_of(self, columns.n_rows, columns.n_features, total)
        if len(columns.again):
            whole = rules.max_features == columns.n_features
            rules = rules._replace(
                max_features=len(columns.feature) if whole else rules.max_features,
                directions=rules.directions[columns.feature if len(rules.directions) else []],
            )
        tree, leaves = grower.grow(rules, weight, int(seed), stopped)
        self.tree_, places = reduced(tree, self)
        self.training_leaves_ = (
            leaves if places is None else np.where(leaves < 0, -1, places[leaves])
        )
        self.n_features_in_ = columns.n_features
        self.max_features_ = count_of_features(self.max_features, columns.n_features)
        return self

    def _grown_on_all(
        self, grower: Grower, weight: np.ndarray, seed: Any, stopped: Callable[[], Any] = never
    ) -> np.ndarray:
        """Grow from columns that are coded; returns the leaf of each row, also of weight zero."""
        self._grown(grower, weight, seed, stopped)
        leaves = self.training_leaves_
        del self.training_leaves_
        left_out = np.flatnonzero(leaves < 0)  # rows whose weight is zero to all digits
        if len(left_out):
            leaves[left_out] = self.tree_.apply_binned(grower.columns, left_out)
        return leaves

    def _replicate_fits(self, X: Any, y: Any) -> TreeReplicates | None:
        """Return what grows clones of this tree from replicates of the data; None where watched."""
        if self.time_limit is not None or self.callback is not None or self.verbose:
            return None
        return TreeReplicates(self, X, y)

    # -- rows ----------------------------------------------------------------------------------

    def _values(self, X: Any) -> np.ndarray:
        """Values of the leaves that the rows of X come to."""
        return self.tree_.values_at(self.apply(X))

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf that each row of X comes to, (n_samples,)."""
        check_is_fitted(self)
        X = self._validated_points(X)
        return self.tree_.apply(X, self._workers(X.shape[0] * self.tree_.depth))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_is_fitted(self)
        return self._answer(self._values(X))

    def decision_path(self, X: Any) -> sp.csr_matrix:
        """Return the nodes that each row of X passes on its way from the root to its leaf.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        indicator : CSR matrix of shape (n_samples, n_nodes)
            One where a row passes a node.
        """
        check_is_fitted(self)
        X = self._validated_points(X)
        return self.tree_.decision_path(X, self._workers(X.shape[0] * self.tree_.depth))

    # -- the tree ------------------------------------------------------------------------------

    def get_depth(self) -> int:
        """Return the number of tests on the longest way to a leaf."""
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return the values of ``ccp_alpha`` at which pruning changes the tree.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        path : Bunch
            ``ccp_alphas``, and ``impurities``: the total impurity of the leaves at each.
        """
        tree = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight).tree_
        _, alphas, impurities = pruning_order(tree)
        return Bunch(ccp_alphas=np.append(0.0, alphas), impurities=impurities)

    @property
    def feature_importances_(self) -> np.ndarray:
        """By how much the tests on each column lower the impurity; they sum to one."""
        check_is_fitted(self)
        return self.tree_.compute_feature_importances()

    def to_sklearn(self) -> Any:
        """Return the fitted tree as scikit-learn's estimator.

        For tools that take scikit-learn's own classes only, such as shap's ``TreeExplainer``.
        ``maxmargin.tree.plot_tree``, ``export_text`` and ``export_graphviz`` do this themselves.
        scikit-learn compares values as float32, so that rows closer to a threshold than float32
        can tell may come to another leaf. ``criterion="normalised_gain"`` becomes ``"entropy"``.
        """
        return decision_tree_of(self)

    def to_text(self, decimals: int = 2, max_depth: int = 10) -> str:
        """Write the tree in lines, a test or a leaf each.

        Parameters
        ----------
        decimals : int, default=2
        max_depth : int, default=10
            Deeper branches are only counted.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        classes = getattr(self, "classes_", None)
        return self.tree_.to_text(names, classes, decimals, max_depth)


class DecisionTreeClassifier(ClassLearner, _DecisionTree):
    """A tree of tests ``x[feature] <= threshold`` whose leaves have few classes each.

    Each node installs the best of some tests: of all of them (``splitter="best"``), or of one
    random test for each of K columns (``"random"``, the extremely randomised tree of the lecture).
    A test is judged by how much it tells about the class,

        I = H_class - sum_sides share H_class(side)       (``"entropy"``)
        2 I / (H_class + H_test)                          (``"normalised_gain"``)

    or by the fall of the Gini index. A tree of depth one is the stump of boosting.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "normalised_gain"}, default="gini"
        ``"normalised_gain"`` is the information gain over the mean of two entropies, that of the
        classes and that of the test's answers: tests with many bits of their own have no advantage.
    splitter : {"best", "random"}, default="best"
        All tests of a column, with thresholds half-way between neighbouring values of the node; or
        one for each column, uniform between the node's least and greatest value.
    max_depth : int, optional
        Tests on the longest way down.
    min_samples_split, min_samples_leaf : int or float
        Rows that a node needs to be parted, and that a leaf has at least; a float is a share of all
        rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of all weight that a leaf has at least.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        K: columns that each node tries, drawn without replacement among those that are not constant
        in the node; None for all.
    random_state : int, RandomState or None, default=None
    min_impurity_decrease : float, default=0.0
        A test is installed only if it lowers the impurity, times the node's share of the weight, by
        so much.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Factors of the rows' weights for each class; for several outputs a list.
    max_bins : int, optional
        Columns with more different values than this are put into so many bins of about as many rows
        each, and only thresholds between bins are tried. By default all are.
    verbose, time_limit, callback
        As everywhere. A tree that is stopped is one whose last nodes became leaves early.

    Attributes
    ----------
    tree_ : Tree
        The nodes, as arrays of scikit-learn's names.
    classes_, n_classes_, n_outputs_, max_features_, feature_importances_
        As in scikit-learn.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    status_ : Status
        Whether the tree is fully grown.

    Notes
    -----
    Among equally good tests (to ten digits) the one on the first column is taken, and of that the
    lowest threshold.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63, 2006. Breiman,
    Friedman, Olshen and Stone, Classification and Regression Trees, 1984.

    Examples
    --------
    >>> from maxmargin import DecisionTreeClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["no", "no", "yes", "yes"]
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> print(model.to_text(), end="")
    |--- feature_0 <= 2.50
    |   |--- class: no
    |--- feature_0 >  2.50
    |   |--- class: yes
    """

    _parameter_constraints: dict = {**_DecisionTree._parameter_constraints, **CLASS_LIMITS}

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback

    def _grower(self, columns: BinnedColumns, index: np.ndarray, classes: Any) -> Grower:
        """Return what grows trees from columns for classes by their index, (n,).

        ``classes`` are their names; the tree knows them from now on.
        """
        self._keep_classes([np.asarray(classes)])
        criterion = CLASS_CRITERIA[self.criterion]
        return Grower(columns, Target.of_classes(index, len(classes), criterion))

    def _fit_binned(
        self,
        columns: BinnedColumns,
        index: np.ndarray,
        classes: Any,
        weight: np.ndarray | None = None,
        seed: int = 0,
    ) -> DecisionTreeClassifier:
        """Grow from columns that are coded; see the module."""
        return self._grown(self._grower(columns, index, classes), weight, seed)

    def predict_proba(self, X: Any) -> Any:
        """Return the share of each class in the leaf that a row of X comes to.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes), or a list of them for several outputs
        """
        check_is_fitted(self)
        return self._shares(self._values(X))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of :meth:`predict_proba`."""
        return self._in_logarithms(self.predict_proba(X))


class DecisionTreeRegressor(ValueLearner, _DecisionTree):
    """A tree of tests ``x[feature] <= threshold`` whose leaves predict the mean of their rows.

    Each node installs the test that lowers the variance most,

        max  W Var - L Var_left - R Var_right

    for the weights W = L + R of the node and its two sides: of all tests, or of one random test for
    each of K columns (``splitter="random"``).

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        The variance, the mean distance from the median (which a leaf then predicts), or half the
        mean Poisson deviance of targets that are not negative; of several outputs the mean.
    splitter, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf
        As in :class:`DecisionTreeClassifier`.
    max_features, random_state, min_impurity_decrease, max_bins, verbose, time_limit, callback
        As in :class:`DecisionTreeClassifier`.

    Attributes
    ----------
    tree_, status_, n_outputs_, max_features_, feature_importances_
        As in :class:`DecisionTreeClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984.

    Examples
    --------
    >>> from maxmargin import DecisionTreeRegressor
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [1.0, 1.0, 2.0, 4.0]
    >>> DecisionTreeRegressor(max_depth=1).fit(X, y).predict([[0.0], [3.6]])
    array([1.33333333, 4.        ])
    """

    _parameter_constraints: dict = {**_DecisionTree._parameter_constraints, **VALUE_LIMITS}

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
    ) -> None:
        self.criterion = criterion_of(criterion)
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback

    def _grower(self, columns: BinnedColumns, y: np.ndarray) -> Grower:
        """Return what grows trees from columns for targets of shape (n,) or (n_outputs, n)."""
        target = Target.of_values(y, VALUE_CRITERIA[self.criterion])
        self.n_outputs_ = target.n_outputs
        return Grower(columns, target)

    def _fit_binned(
        self,
        columns: BinnedColumns,
        y: np.ndarray,
        weight: np.ndarray | None = None,
        seed: int = 0,
    ) -> DecisionTreeRegressor:
        """Grow from columns that are coded; see the module."""
        return self._grown(self._grower(columns, y), weight, seed)
