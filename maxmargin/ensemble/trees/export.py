"""Convert fitted trees and forests to scikit-learn's, for its plots and exports, and for tools."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np
from sklearn import ensemble, tree
from sklearn.base import is_classifier
from sklearn.tree._tree import NODE_DTYPE
from sklearn.tree._tree import Tree as ScikitLearnTree
from sklearn.utils.validation import check_is_fitted

from maxmargin.ensemble.trees.tree import Tree

_CLASSES = {
    ("tree", True): tree.DecisionTreeClassifier,
    ("tree", False): tree.DecisionTreeRegressor,
    ("member", True): tree.ExtraTreeClassifier,
    ("member", False): tree.ExtraTreeRegressor,
    ("forest", True): ensemble.ExtraTreesClassifier,
    ("forest", False): ensemble.ExtraTreesRegressor,
}
_OF_FIT = ("n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "n_classes_")


def nodes_of(tree: Tree) -> ScikitLearnTree:
    """Return scikit-learn's ``Tree`` of the same nodes and values."""
    nodes = np.zeros(tree.node_count, NODE_DTYPE)
    for theirs, ours in {
        "left_child": tree.children_left,
        "right_child": tree.children_right,
        "feature": tree.feature,
        "threshold": tree.threshold,
        "impurity": tree.impurity,
        "n_node_samples": tree.n_node_samples,
        "weighted_n_node_samples": tree.weighted_n_node_samples,
        "missing_go_to_left": tree.missing_go_to_left,
    }.items():
        nodes[theirs] = ours
    made = ScikitLearnTree(tree.n_features, tree.n_classes, tree.n_outputs)
    made.__setstate__(
        {
            "max_depth": tree.max_depth,
            "node_count": tree.node_count,
            "nodes": nodes,
            "values": np.ascontiguousarray(tree.value),
        }
    )
    return made


def decision_tree_of(model: Any, kind: str = "tree") -> Any:
    """Return scikit-learn's fitted estimator for a decision tree of this package."""
    check_is_fitted(model)
    made = _with_parameters(model, _CLASSES[kind, is_classifier(model)])
    made.tree_, made.max_features_ = nodes_of(model.tree_), model.max_features_
    return made


def forest_of(model: Any) -> Any:
    """Return scikit-learn's fitted estimator for a forest of this package."""
    check_is_fitted(model)
    of_classes = is_classifier(model)
    made = _with_parameters(model, _CLASSES["forest", of_classes])
    made.estimator_ = _CLASSES["member", of_classes]()
    made.estimators_ = [decision_tree_of(member, "member") for member in model.estimators_]
    if of_classes:  # scikit-learn's members know the indices of classes only
        counts = np.atleast_1d(model.n_classes_)
        names = [np.arange(count) for count in counts]
        for member in made.estimators_:
            member.classes_ = names if len(names) > 1 else names[0]
    return made


def _with_parameters(model: Any, cls: type) -> Any:
    """Return an estimator with the shared parameters, and the attributes of the data."""
    own, theirs = model.get_params(deep=False), cls().get_params(deep=False)
    made = cls(**{name: own[name] for name in theirs if name in own})
    if made.criterion == "normalised_gain":
        made.criterion = "entropy"  # the impurity of its nodes
    for name in _OF_FIT:
        if hasattr(model, name):
            setattr(made, name, getattr(model, name))
    return made


def _of_ours(function: Any) -> Any:
    """Let a function of ``sklearn.tree`` also take the trees of this package."""

    @wraps(function)
    def converted(decision_tree: Any, *args: Any, **options: Any) -> Any:
        to_sklearn = getattr(decision_tree, "to_sklearn", None)
        own = decision_tree if to_sklearn is None else to_sklearn()
        return function(own, *args, **options)

    return converted


export_graphviz = _of_ours(tree.export_graphviz)
export_text = _of_ours(tree.export_text)
plot_tree = _of_ours(tree.plot_tree)
