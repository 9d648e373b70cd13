"""Deliberate mistakes, one at a time, and whether the tests notice.

    python benchmarks/mutations.py [--only 01,17] [--jobs 2]

Each mutant is one edit of one file, in a copy of the project; the tests that should notice, of both
tiers, run there until the first failure: first those that are named by ``-k``, then all of their
file. Tests that failed run once more in the end, without a mistake. If a file that a mutant names
has changed, an error asks to state the mistake anew. Results go to ``results/mutations.md``, where
mutants that do not run this time keep their rows.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
_SECONDS = 600  # of CPU time that the tests of a mutant may take: tests that hang have noticed


@dataclass(frozen=True)
class Mutant:
    """A mistake: what becomes what in which file, and the tests that should notice."""

    number: str
    about: str
    file: str
    right: str
    wrong: str
    tests: str


MUTANTS = [
    Mutant(
        "03",
        "several pairs have the status of the widest, not of the most severe",
        "certificate.py",
        "return replace(worst, status=status, parts=tuple(parts), **numbers)",
        "return replace(worst, parts=tuple(parts), **numbers)",
        "test_certificates.py",
    ),
    Mutant(
        "04",
        "lambda off by two",
        "risk/penalty.py",
        "return 1.0 / (2.0 * weight * lam)",
        "return 1.0 / (weight * lam)",
        "test_linear.py",
    ),
    Mutant(
        "07",
        "tied votes go to the last class",
        "multiclass/one_vs_one.py",
        "return np.argmax(self._votes(values), axis=1)",
        "return self.n_classes - 1 - np.argmax(self._votes(values)[:, ::-1], axis=1)",
        "test_parity.py",
    ),
    Mutant(
        "08",
        "support vectors reversed within classes",
        "multiclass/scheme.py",
        'support = support[np.argsort(y[support], kind="stable")]',
        'support = support[::-1][np.argsort(y[support][::-1], kind="stable")]',
        "test_parity.py",
    ),
    Mutant(
        "09",
        "a product is valid if one part is",
        "kernels/algebra.py",
        "return joint_validity(*self.kernels)",
        "return joint_validity(self.kernels[0])",
        "test_kernels.py",
    ),
    Mutant(
        "11",
        "a view forgets the one around it",
        "kernels/algebra.py",
        "self.kernel._emit(program, (*view, op.Columns(tuple(self.columns))))",
        "self.kernel._emit(program, (op.Columns(tuple(self.columns)),))",
        "test_kernels.py",
    ),
    Mutant(
        "16",
        "a checkpoint forgets the kernel",
        "estimators/checkpoint.py",
        "joblib.hash((*identity[:1], kernel, *identity[1:]))",
        "joblib.hash(identity)",
        "test_long_work.py -k checkpoint",
    ),
    Mutant(
        "17",
        "a checkpoint forgets the costs",
        "estimators/checkpoint.py",
        "problem.linear, problem.lower, problem.upper)",
        "problem.linear)",
        "test_long_work.py",
    ),
    Mutant(
        "19",
        "folds of probabilities ignore the time limit",
        "svm/out_of_fold.py",
        "self.monitor = Monitor(left)",
        "self.monitor = Monitor(None)",
        "test_long_work.py",
    ),
    Mutant(
        "40",
        "lambda of a fold from its own rows",
        "svm/out_of_fold.py",
        "task.weight[kept], task.weight[number >= 0]",
        "task.weight[kept], task.weight[kept]",
        "test_parity.py",
    ),
    Mutant(
        "41",
        "sigmoids from values of rows that were fitted",
        "solvers/dual/left_out.py",
        "np.ascontiguousarray(cost[:, near])",
        "np.repeat(cost.max(axis=0)[None, near], len(cost), axis=0)",
        "test_parity.py test_probability.py -k probabilities or left_out",
    ),
    Mutant(
        "42",
        "the confidence of a class over two in place of three",
        "multiclass/one_vs_one.py",
        "total / (3 * (np.abs(total) + 1))",
        "total / (2 * (np.abs(total) + 1))",
        "test_parity.py",
    ),
    Mutant(
        "20",
        "balanced weights of a search from all rows",
        "selection/targets.py",
        "self.index[fold.train], fold.weight[fold.train]",
        "self.index, np.ones(len(self.index))",
        "test_search.py",
    ),
    Mutant(
        "26",
        "a stream ignores class weights",
        "linear/base.py",
        "return weight, class_weights(self.class_weight, self.classes_, None, weight)",
        "return weight, class_weights(None, self.classes_, None, weight)",
        "test_linear.py",
    ),
    Mutant(
        "27",
        "parts of a perceptron ignore class weights",
        "linear/base.py",
        "return weight, class_weights(self.class_weight, self.classes_, None, weight)",
        "return weight, class_weights(None, self.classes_, None, weight)",
        "test_perceptron.py",
    ),
    Mutant(
        "28",
        "the gradient of a softmax stream halved",
        "solvers/risk/pegasos.py",
        "step = c * ((1.0 if j == own else 0.0) - p[j])",
        "step = 0.5 * c * ((1.0 if j == own else 0.0) - p[j])",
        "test_linear.py",
    ),
    Mutant(
        "33",
        "several classes have the bound of the worst pair",
        "bounds/left_out.py",
        "errors += 2 * pair.primal * float(pair.reach(gram, every_row=True).max())",
        "errors = max(errors, 2 * pair.primal * float(pair.reach(gram, every_row=True).max()))",
        "test_bounds.py",
    ),
    Mutant(
        "43",
        "steps of earlier rounds do not count",
        "solvers/driver.py",
        "max(self.max_iter - self.spent - n_iter, 0)",
        "max(self.max_iter - n_iter, 0)",
        "test_driver.py",
    ),
    Mutant(
        "44",
        "a trace is never thinned",
        "trace.py",
        "if len(known) > self.limit:",
        "if False:",
        "test_driver.py",
    ),
    Mutant(
        "45",
        "a listener cannot stop a run",
        "solvers/driver.py",
        "ended = run.status or (self.monitor.stopped() if run.usable else None)",
        "ended = run.status",
        "test_driver.py",
    ),
    Mutant(
        "46",
        "a method's refusal is not heard",
        "solvers/dual/certified.py",
        "            if refused is not None:\n                raise ValueError(refused)\n",
        "",
        "test_driver.py",
    ),
    Mutant(
        "47",
        "the second class of nu-SVC has the sign of the first in the margin",
        "duals/machines.py",
        "margin_weights=np.array([-0.5, 0.5]) if bias else np.array([-1.0]),",
        "margin_weights=np.array([-0.5, -0.5]) if bias else np.array([-1.0]),",
        "test_certificates.py",
    ),
    Mutant(
        "48",
        "a tube that is negative is not closed",
        "backends/cpu/dual/certificate.py",
        "levels[g] -= tube * (weights[g] / length)",
        "levels[g] -= 0.0",
        "test_certificates.py test_small.py test_engine.py test_properties.py",
    ),
    Mutant(
        "49",
        "one-vs-rest takes the smallest value",
        "multiclass/scheme.py",
        "scores -= np.maximum(0.0, 1.0 - value[:, None] * codes)",
        "scores -= np.maximum(0.0, 1.0 + value[:, None] * codes)",
        "test_multiclass.py",
    ),
    Mutant(
        "50",
        "a gap of twice tol is called converged",
        "certificate.py",
        "if relative <= tol:",
        "if relative <= 2 * tol:",
        "test_linear.py",
    ),
    Mutant(
        "51",
        "a start keeps what the constraint forbids",
        "duals/problem.py",
        "near[member] -= (drift / room.sum()) * room",
        "pass",
        "test_long_work.py",
    ),
    Mutant(
        "52",
        "candidates that share nothing have no reason",
        "selection/plan.py",
        "self.reasons.setdefault((candidate.number, split), reason)",
        "pass",
        "test_search.py",
    ),
    Mutant(
        "53",
        "a warning points into the package",
        "estimators/warn.py",
        "stacklevel=1 if frame is None else level",
        "stacklevel=2",
        "test_estimators.py",
    ),
    Mutant(
        "54",
        "variables that are set aside never come back",
        "solvers/dual/smo.py",
        "self.v[waiting] -= others.orientation * others.values(moved)[others.gram_row]",
        "pass",
        "test_certificates.py",
    ),
    Mutant(
        "55",
        "a row of the DAG that loses goes on with the loser",
        "multiclass/dag.py",
        "low[rows] += ~won",
        "low[rows] += won",
        "test_schemes.py",
    ),
    Mutant(
        "56",
        "both sides of a balanced task keep their weights",
        "multiclass/scheme.py",
        "half / sides[0], half / sides[1])",
        "half / sides[0], half / sides[0])",
        "test_schemes.py",
    ),
    Mutant(
        "57",
        "a code mends one error too many",
        "multiclass/codes.py",
        "lead[~np.eye(self.n_classes, dtype=bool)].min() / 2)) - 1, 0)",
        "lead[~np.eye(self.n_classes, dtype=bool)].min() / 2)), 0)",
        "test_schemes.py",
    ),
    Mutant(
        "58",
        "equal tasks of a code are not refused",
        "multiclass/codes.py",
        "if len(code) > 1 and _closest_tasks(code) == 0:",
        "if len(code) > 1 and _closest_tasks(code) < 0:",
        "test_schemes.py",
    ),
    Mutant(
        "59",
        "Weston and Watkins have the bound of Crammer and Singer",
        "duals/direct.py",
        "self.n_classes - 1 if self.summed else 1)",
        "1)",
        "test_direct.py",
    ),
    Mutant(
        "60",
        "the gap of a direct form leaves the losses out",
        "duals/direct.py",
        "row_gaps = self.losses(values) + (b * g).sum(axis=1)",
        "row_gaps = (b * g).sum(axis=1)",
        "test_direct.py",
    ),
    Mutant(
        "61",
        "the error of w times the root of lambda, not over it",
        "solvers/ridge/problem.py",
        "0.5 * length / alpha**0.5",
        "0.5 * length * alpha**0.5",
        "test_ridge.py",
    ),
    Mutant(
        "62",
        "weights of ridge rows squared",
        "solvers/ridge/problem.py",
        "return np.sqrt(self.weight)[:, None]",
        "return self.weight[:, None]",
        "test_ridge.py",
    ),
    Mutant(
        "63",
        "left-out errors without the roots of the weights",
        "solvers/ridge/path.py",
        "return b, b / (diagonal[:, None] * problem.root)",
        "return b, b / diagonal[:, None]",
        "test_ridge.py",
    ),
    Mutant(
        "64",
        "a residual above tol is called converged",
        "solvers/ridge/problem.py",
        "judged = Status.STALLED",
        "judged = Status.CONVERGED",
        "test_ridge.py",
    ),
    Mutant(
        "66",
        "small letters of DNA are strangers",
        "kernels/sequences/alphabet.py",
        "if self.name in _FOLDED else (self.letters,)",
        "if self.name == '' else (self.letters,)",
        "test_sequences.py",
    ),
    Mutant(
        "67",
        "the weights of words without the normalisation",
        "kernels/sequences/importance.py",
        "own = own * np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)",
        "own = own * 1.0",
        "test_sequences.py",
    ),
    Mutant(
        "68",
        "the lower end of the line forgets C where labels are equal",
        "solvers/classical/two_variables.py",
        "low, high = max(0.0, a1 + a2 - C1), min(C2, a1 + a2)",
        "low, high = 0.0, min(C2, a1 + a2)",
        "test_classical_smo.py",
    ),
    Mutant(
        "69",
        "the lower bound of Ivanov's problem knows nothing of its norm",
        "solvers/ivanov.py",
        "bound = -self.norm_bound * length - conjugates",
        "bound = -conjugates",
        "test_linear.py test_estimators.py",
    ),
    Mutant(
        "70",
        "clipped steps that end off the hyperplane keep their status",
        "solvers/classical/projected_gradient.py",
        "Status.INFEASIBLE if self.infeasible else status",
        "status",
        "test_classical_dual.py",
    ),
    Mutant(
        "71",
        "schedules of steps begin at zero",
        "solvers/steps.py",
        "np.arange(before + 1.0, before + count + 1.0)",
        "np.arange(before + 2.0, before + count + 2.0)",
        "test_regression.py test_perceptron.py test_linear.py",
    ),
    Mutant(
        "72",
        "intercepts of a trace forget the means of the columns",
        "estimators/readings.py",
        "_squeezed(centre + c * size - weights @ columns.mean)",
        "_squeezed(centre + c * size)",
        "test_trace.py",
    ),
    Mutant(
        "73",
        "support vectors at their bound count as free",
        "svm/base.py",
        "return int(np.count_nonzero(beta)) - bounded, bounded",
        "return int(np.count_nonzero(beta)), bounded",
        "test_explain.py -k numbers",
    ),
    Mutant(
        "74",
        "a row at the origin is no witness without a bias",
        "evaluation.py",
        "if through_origin and at_origin.any():",
        "if False:",
        "test_certificates.py",
    ),
    Mutant(
        "75",
        "the normalised gain forgets the entropy of the test",
        "backends/cpu/trees/scores.py",
        "return 2.0 * gain / (entropy + outputs * spread)",
        "return 2.0 * gain / entropy",
        "test_trees.py",
    ),
    Mutant(
        "76",
        "of equally good tests the last column's is taken",
        "backends/cpu/trees/grow.py",
        "if found > best + tie or (found > best - tie and f < best_feature):",
        "if found > best + tie or (found > best - tie and f > best_feature):",
        "test_trees.py -k thresholds",
    ),
    Mutant(
        "77",
        "bias and variance are measured on rows that a replicate has",
        "ensemble/bagging/bias_variance.py",
        "members.replicates.counts(int(s)) == 0)",
        "members.replicates.counts(int(s)) != 1)",
        "test_bagging.py",
    ),
    Mutant(
        "78",
        "kernel machines on replicates count every drawn row once",
        "svm/replicates.py",
        "weight = np.where(counts > 0, counts * factors[index], 0.0)",
        "weight = np.where(counts > 0, factors[index], 0.0)",
        "test_bagging.py",
    ),
    Mutant(
        "79",
        "out of bag, members answer for rows that they have seen",
        "ensemble/bagging/base.py",
        "rows = [np.flatnonzero(own == 0) for own in counts]",
        "rows = [np.flatnonzero(own >= 0) for own in counts]",
        "test_bagging.py",
    ),
    Mutant(
        "80",
        "boosted words without smoothing in the weights against a label",
        "ensemble/words/rounds.py",
        "np.log((sides[:, 0] + eps) / (sides[:, 1] + eps))",
        "np.log((sides[:, 0] + eps) / (sides[:, 1] + 2 * eps))",
        "test_word_stumps.py",
    ),
    Mutant(
        "81",
        "stumps of equal error: the last one",
        "backends/cpu/trees/stump.py",
        "if right > best + TIE * whole:",
        "if right >= best - TIE * whole:",
        "test_boosting.py",
    ),
    Mutant(
        "82",
        "SAMME's alpha without its second term",
        "ensemble/boosting/rounds.py",
        "alpha = 0.5 * np.log((1.0 - error) / error * (problem.n_classes - 1))",
        "alpha = 0.5 * np.log((1.0 - error) / error)",
        "test_boosting.py",
    ),
    Mutant(
        "83",
        "a perfect hypothesis votes with the others",
        "ensemble/boosting/vote.py",
        "votes[:], total, alpha = 0.0, 0.0, 1.0",
        "alpha = 1.0",
        "test_boosting.py",
    ),
    Mutant(
        "84",
        "weak learners get weights of sum one",
        "ensemble/boosting/weak.py",
        "model.fit(self.X, y, sample_weight=len(D) * D)",
        "model.fit(self.X, y, sample_weight=D)",
        "test_boosting.py",
    ),
    Mutant(
        "85",
        "LogitBoost cuts steps and not curvatures",
        "ensemble/boosting/newton.py",
        "w = np.maximum(np.maximum(curvature, np.abs(slope) / most), _FLAT)\n"
        "            z = -self.sign * slope / w",
        "w = np.maximum(curvature, _FLAT)\n"
        "            z = np.clip(-self.sign * slope / w, -most, most)",
        "test_boosting.py",
    ),
    Mutant(
        "86",
        "LPBoost's slack costs one over the rows, whatever nu",
        "ensemble/boosting/lpboost.py",
        "np.minimum(problem.weight / nu, 1.0)",
        "np.ones(len(self.sign))",
        "test_boosting.py",
    ),
    Mutant(
        "87",
        "a warm start takes other rows",
        "ensemble/boosting/rounds.py",
        "np.abs(kept - self.D).max() > 1e-8 * kept.max()",
        "False",
        "test_boosting.py",
    ),
    Mutant(
        "88",
        "covariances of a process in the scale of deviations",
        "kernel_methods/gaussian_process.py",
        "_squeezed(covariance[..., None] * self._y_train_std**2)",
        "_squeezed(covariance[..., None] * self._y_train_std)",
        "test_process.py -k scikit_learn",
    ),
    Mutant(
        "89",
        "normalize_y divides constant targets by zero",
        "kernel_methods/process_options.py",
        "deviation = np.where(spread > 0, spread, 1.0)",
        "deviation = spread",
        "test_process.py -k targets",
    ),
    Mutant(
        "90",
        "the warning of a parameter at its bound names the other bound",
        "kernel_methods/process_options.py",
        "at_low = bool(abs(theta[k] - low) < abs(theta[k] - high))",
        "at_low = bool(abs(theta[k] - low) > abs(theta[k] - high))",
        "test_process.py -k bounds or runs_away",
    ),
    Mutant(
        "91",
        "kernel logistic regression: lambda counts rows, not weights",
        "kernel_methods/kernel_logistic.py",
        "cost = cost_per_weight(self.C, self.lam, float(weight.sum()))",
        "cost = cost_per_weight(self.C, self.lam, float(len(weight)))",
        "contracts/test_answers.py -k lam_is",
    ),
    Mutant(
        "92",
        "kernel logistic regression ignores a balanced scheme",
        "kernel_methods/kernel_logistic.py",
        "scheme.weigh(signs[rows], weight[rows])",
        "weight[rows]",
        "test_kernel_logistic.py -k schemes",
    ),
    Mutant(
        "93",
        "a randomized KernelPCA makes one pass too few",
        "kernel_methods/kernel_pca.py",
        "passes = 1 + (few if isinstance(self.iterated_power, str) else self.iterated_power)",
        "passes = few if isinstance(self.iterated_power, str) else self.iterated_power",
        "test_kernel_pca.py -k iterated_power",
    ),
    Mutant(
        "94",
        "KernelPCA keeps silent about max_iter for every solver",
        "kernel_methods/kernel_pca.py",
        'if certificate.converged or (limited and self.eigen_solver == "randomized"):',
        "if certificate.converged or limited:",
        "test_kernel_pca.py -k stopped or tol",
    ),
    Mutant(
        "95",
        "pre-images that have not settled are not counted",
        "kernel_methods/preimages.py",
        ("    return len(moving)\n"),
        ("    return 0\n"),
        "test_kernel_pca.py -k fixed_point or preimages",
    ),
    Mutant(
        "96",
        "leave-one-out scores ignore the weights of the rows",
        "kernel_methods/kernel_ridge_cv.py",
        'np.einsum("i,kij->kj", own / own.sum(), found.left_out**2)',
        'np.einsum("i,kij->kj", np.ones_like(own) / len(own), found.left_out**2)',
        "test_ridge.py -k leave_one_out or ridge_cv or weights",
    ),
    Mutant(
        "97",
        "cv_results_ of rows with weight stand at the first rows",
        "kernel_methods/kernel_ridge_cv.py",
        "out[self._rows[: found.seen], :, : len(values)]",
        "out[: found.seen, :, : len(values)]",
        "test_ridge.py -k leave_one_out or ridge_cv or left_out or path",
    ),
    Mutant(
        "98",
        "uniform landmarks are the first rows",
        "feature_maps/nystroem.py",
        "return rows.drawn(random, count)",
        "return np.arange(count)",
        "test_feature_maps.py -k nystroem or landmarks",
    ),
    Mutant(
        "99",
        "the error of an approximation is measured on the landmarks, too",
        "feature_maps/base.py",
        "random.permutation(np.setdiff1d(np.arange(self.n), chosen))[:count]",
        "random.permutation(self.n)[:count]",
        "test_feature_maps.py -k nystroem or columns",
    ),
    Mutant(
        "100",
        "random features forget the factor of a kernel",
        "feature_maps/random_fourier.py",
        "return drawn, factor * float(kernel.constant)",
        "return drawn, factor",
        "test_feature_maps.py -k fourier",
    ),
    Mutant(
        "101",
        "class weights of several outputs: those of the first",
        "ensemble/trees/base.py",
        "weight = weight * np.prod(factors, axis=0)",
        "weight = weight * factors[0]",
        "test_trees.py -k class_weights",
    ),
    Mutant(
        "102",
        "a forest's share of rows is cut, not rounded",
        "ensemble/trees/forest.py",
        "return max(1, round(n * max_samples))",
        "return max(1, int(n * max_samples))",
        "test_trees.py -k sequence or bag",
    ),
    Mutant(
        "103",
        "importances of a forest do not sum to one",
        "ensemble/trees/forest.py",
        "return mean / total if total > 0 else mean",
        "return mean",
        "test_trees.py -k importances",
    ),
    Mutant(
        "104",
        "a warm start forgets the seeds of the trees that are there",
        "ensemble/trees/forest.py",
        "own[:known] = self._seeds[:known]",
        "pass",
        "test_trees.py -k warm_start",
    ),
    Mutant(
        "105",
        "balanced_subsample counts all rows, not those of the replicate",
        "ensemble/trees/forest.py",
        'factor *= class_weights("balanced", np.arange(count), index, weight)[index]',
        'factor *= class_weights("balanced", np.arange(count), index, np.ones(self.n))[index]',
        "test_trees.py -k class_weights",
    ),
    Mutant(
        "106",
        "the squared bias of a study keeps the variance of its mean",
        "ensemble/trees/k_study.py",
        '"squared_bias": squared - variance_mean / self.R,',
        '"squared_bias": squared,',
        "test_trees.py -k k_study",
    ),
    Mutant(
        "107",
        "a warm start draws the members again that are there",
        "ensemble/bagging/base.py",
        "return seeds_of(self.random_state, more, before)",
        "return seeds_of(self.random_state, more)",
        "test_bagging.py -k warm or replicates or time_limit",
    ),
    Mutant(
        "108",
        "an ensemble that was stopped says fit_status_ 0",
        "ensemble/bagging/base.py",
        "self.fit_status_ = int(self.status_.stopped)",
        "self.fit_status_ = 0",
        "test_bagging.py -k time_limit or stop",
    ),
    Mutant(
        "109",
        "the uniform bound of AdaBoost takes the best edge, not the worst",
        "ensemble/boosting/adaboost.py",
        "gamma, rounds = np.minimum.accumulate(edge)",
        "gamma, rounds = np.maximum.accumulate(edge)",
        "test_boosting.py -k bound",
    ),
    Mutant(
        "110",
        "values of LogitBoost for several classes without (K - 1) / K",
        "ensemble/boosting/logitboost.py",
        "F = F + size * ((K - 1.0) / K * (table - table.mean(axis=1, keepdims=True)))",
        "F = F + size * (table - table.mean(axis=1, keepdims=True))",
        "test_boosting.py -k logitboost",
    ),
    Mutant(
        "111",
        "LPBoost without a positive margin says converged",
        "ensemble/boosting/lpboost.py",
        "found.status = Status.TRIVIAL",
        "found.status = Status.CONVERGED",
        "test_boosting.py -k lpboost",
    ),
    Mutant(
        "112",
        "the number of trees forgets the labels of their leaves",
        "ensemble/boosting/capacity.py",
        "logarithm = (2.0**depth - 1.0) * np.log(ways) + 2.0**depth * np.log(2.0)",
        "logarithm = (2.0**depth - 1.0) * np.log(ways)",
        "test_boosting.py -k margin_bound",
    ),
    Mutant(
        "113",
        "a step of boosting_descent ignores the weights of the rows",
        "ensemble/boosting/descent.py",
        "D = s * np.exp(u.min() - u)",
        "D = np.exp(u.min() - u)",
        "test_boosting.py -k descent",
    ),
    Mutant(
        "114",
        "smoothing is one over the documents, not over their labels",
        "ensemble/words/booster.py",
        "eps = self.smoothing or 1.0 / (problem.weight.sum() * k)",
        "eps = self.smoothing or 1.0 / problem.weight.sum()",
        "test_word_stumps.py -k formulas or rounds",
    ),
    Mutant(
        "115",
        "thresholds are tuned by boosters that ignore weights",
        "ensemble/words/booster.py",
        "part = LabelledWords(rows[inside], LabelSets.of(truth[inside]), weight[inside])",
        "part = LabelledWords(rows[inside], LabelSets.of(truth[inside]), np.ones(len(inside)))",
        "test_word_stumps.py -k thresholds or weight",
    ),
    Mutant(
        "116",
        "a label that every document has is not warned of",
        "ensemble/words/booster.py",
        '(share >= 1, "every", "always")',
        '(share > 1, "every", "always")',
        "test_word_stumps.py -k nobody_or_everybody",
    ),
    Mutant(
        "117",
        "the score for several labels ignores the weights",
        "ensemble/words/classifier.py",
        (
            "return float(accuracy_score(self._labels.truth(y), chosen, "
            "sample_weight=sample_weight))"
        ),
        "return float(accuracy_score(self._labels.truth(y), chosen))",
        "test_word_stumps.py -k label or scores or weight",
    ),
    Mutant(
        "118",
        "labels that the fit has not seen are scored as wrong",
        "ensemble/words/labels.py",
        (
            "            if strange:\n"
            "                raise ValueError(_unknown(strange))\n"
            "            return labels[:, None]"
        ),
        "            return labels[:, None]",
        "test_word_stumps.py -k refused or scores or label",
    ),
    Mutant(
        "119",
        "a count of zero that is written down is a word",
        "ensemble/words/documents.py",
        "if not rows.has_canonical_format or (rows.data == 0).any():",
        "if not rows.has_canonical_format:",
        "test_word_stumps.py -k matrix or counts",
    ),
    Mutant(
        "120",
        "the best of equally good thresholds is the one farthest from zero",
        "ensemble/words/thresholds.py",
        "best[np.argmin(np.abs(between[best]))]",
        "best[np.argmax(np.abs(between[best]))]",
        "test_word_stumps.py -k threshold",
    ),
    Mutant(
        "121",
        "positive classes weigh in every machine",
        "multiclass/labels.py",
        "weight * np.where(index == k, factors[k], 1.0) if own else",
        "of_rows if own else",
        "test_linear.py -k class_weight or weighs_in_its_own",
    ),
    Mutant(
        "122",
        "as many tasks as there are splits are refused",
        "multiclass/codes.py",
        "if count > most:",
        "if count >= most:",
        "test_schemes.py -k codes",
    ),
    Mutant(
        "123",
        "the winner of a graph is one vote ahead, and not ahead of all",
        "multiclass/dag.py",
        "scores[np.arange(len(values)), self.decode(values)] += self.n_classes",
        "scores[np.arange(len(values)), self.decode(values)] += 1.0",
        (
            "test_schemes.py contracts/test_answers.py -k dag or graph or "
            "predict_agrees_with_decision_function"
        ),
    ),
    Mutant(
        "124",
        "one-vs-rest by votes takes values",
        "multiclass/one_vs_rest.py",
        'return (values > 0).astype(np.float64) if self.decoding == "votes" else values',
        "return values",
        "test_schemes.py -k votes or schemes",
    ),
    Mutant(
        "125",
        "a temperature for two classes counts values twice",
        "multiclass/scheme.py",
        "return values * [-0.5, 0.5] if",
        "return values * [-1.0, 1.0] if",
        "test_probability.py -k optimal or kind",
    ),
    Mutant(
        "126",
        "SchemeClassifier ignores a balanced scheme",
        "multiclass/wrapper.py",
        'own = {"sample_weight": scheme.weigh(labels, weight[rows])} if weighed else {}',
        'own = {"sample_weight": weight[rows]} if weighed else {}',
        "test_schemes.py -k balanced or around",
    ),
    Mutant(
        "127",
        "decisions from probabilities are all positive",
        "multiclass/wrapper.py",
        "return 2.0 * estimator.predict_proba(X)[:, 1] - 1.0",
        "return estimator.predict_proba(X)[:, 1]",
        "test_schemes.py -k around or wrapper",
    ),
    Mutant(
        "128",
        "a temperature ignores the weights of the rows",
        "svm/probability.py",
        "scale = scale_of_classes(logits, y, known[0].weight)",
        "scale = scale_of_classes(logits, y, np.ones(len(y)))",
        "test_probability.py -k optimal or weight",
    ),
    Mutant(
        "129",
        "the greatest improvement without the curvature's share",
        "solvers/classical/coordinate_ascent.py",
        "return int(np.argmax(change * (v - 0.5 * curvature * change)))",
        "return int(np.argmax(change * v))",
        "test_classical_smo.py -k orders or trace",
    ),
    Mutant(
        "130",
        "a last round that max_iter cuts short counts as converged",
        "solvers/classical/coordinate_ascent.py",
        "finished = len(moved) < max_iter or len(moved) % len(turns) == 0",
        "finished = True",
        "test_classical_smo.py -k coordinate_ascent or orders",
    ),
    Mutant(
        "131",
        "steps away go from corners that the point is not on",
        "solvers/classical/frank_wolfe.py",
        "away = self.beta - self._corner(-gradient, self.problem.is_free(self.beta))",
        "away = self.beta - self._corner(-gradient)",
        "test_classical_dual.py -k away or frank_wolfe or bank",
    ),
    Mutant(
        "132",
        "a given step of a subgradient never shrinks",
        "solvers/classical/subgradient.py",
        "return size / t**0.5",
        "return size",
        "test_classical_dual.py -k subgradient",
    ),
    Mutant(
        "133",
        "the bound on coefficients forgets the weights",
        "solvers/ridge/problem.py",
        "return gap, float(self.root.max()) * length / alpha,",
        "return gap, length / alpha,",
        "test_ridge.py -k bounds or believes",
    ),
    Mutant(
        "134",
        "the rounding of Ridge's objective without alpha",
        "solvers/ridge/linear.py",
        "return 0.5 * length**2 / self.alpha, length / self.alpha, length / self.alpha",
        "return 0.5 * length**2, length / self.alpha, length / self.alpha",
        "test_ridge.py -k bounds or linear",
    ),
    Mutant(
        "135",
        "a path that was stopped before the first alpha says converged",
        "solvers/ridge/path.py",
        "return replace(found, b=b, n_iter=self.n_iter, status=status)",
        "return replace(found, b=b, n_iter=self.n_iter)",
        "test_ridge.py -k stopped",
    ),
    Mutant(
        "136",
        "an evaluation is kept for another cost",
        "solvers/risk/run.py",
        "return known.times(risk.total_cost / total)",
        "return known",
        "test_linear.py -k path",
    ),
    Mutant(
        "137",
        "a descent that is stopped gives its last point, not its lowest",
        "solvers/risk/descent.py",
        (
            "if status in _LOWEST or not (self.keep_last or status is Status.CONVERGED):\n"
            "            self.place = self.best"
        ),
        ("if status in _LOWEST:\n            self.place = self.best"),
        "test_regression.py -k lowest or too_long",
    ),
    Mutant(
        "138",
        "eigenvectors that a method only believes in are called converged",
        "solvers/spectral/problem.py",
        "            status = Status.STALLED",
        "            status = Status.CONVERGED",
        "test_kernel_pca.py -k believes or tol or stopped",
    ),
    Mutant(
        "139",
        "nothing is missing below the eigenvalues that were asked for",
        "solvers/spectral/problem.py",
        "missing = max(float(beyond[:1].sum()), 0.0)",
        "missing = 0.0",
        "test_kernel_pca.py -k bounds or certificate",
    ),
    Mutant(
        "140",
        "R^2 of partitions forgets how their means differ",
        "dask/answers.py",
        "about = np.sum([part.about for part in some], axis=0) + w @ (mean - middle) ** 2",
        "about = np.sum([part.about for part in some], axis=0)",
        "test_dask.py -k scores",
    ),
    Mutant(
        "141",
        "accuracies of partitions ignore the weights",
        "dask/answers.py",
        "return np.array([w.sum(), w @ right])",
        "return np.array([len(w), right.sum()])",
        "test_dask.py -k scores or accuracies",
    ),
    Mutant(
        "142",
        "balanced classes of a collection count rows, not weights",
        "dask/classes.py",
        "mass = rows.class_weights",
        "mass = rows.class_counts",
        "test_dask_least_squares.py -k classes",
    ),
    Mutant(
        "143",
        "landmarks of partitions come in the order of their partitions",
        "dask/feature_maps.py",
        'np.argsort(order, kind="stable"), name="gather"',
        'np.arange(len(order)), name="gather"',
        "test_dask_features.py -k maps or landmarks",
    ),
    Mutant(
        "144",
        "a partition without any weight is refused",
        "dask/rows.py",
        "if weight is not None and not np.asarray(weight).any():",
        "if False:",
        "test_dask_least_squares.py -k weigh_nothing",
    ),
    Mutant(
        "145",
        "a line that begins with a block of a file is lost",
        "dask/storage.py",
        "file.seek(start - 1)",
        "file.seek(start)",
        "test_dask_storage.py -k svmlight",
    ),
    Mutant(
        "146",
        "partial_fit of a collection ignores sample_weight",
        "dask/fits.py",
        'pieces = {"y": y, "sample_weight": options.pop("sample_weight", None)}',
        'pieces = {"y": y, "sample_weight": (options.pop("sample_weight", None), None)[1]}',
        "test_dask.py -k streams",
    ),
    Mutant(
        "147",
        "folds of probabilities keep the rows that were left out",
        "dask/out_of_fold.py",
        "weight=np.where(number == fold, 0.0, block.weight)",
        "weight=block.weight",
        "test_dask_kernel.py test_dask_features.py -k probabilities",
    ),
    Mutant(
        "148",
        "a row that lies on a worker alone is drawn once, however often it was drawn",
        "dask/ensemble/bagging.py",
        "return columns, place[self.rows[place] == drawn]",
        "return columns, np.unique(place[self.rows[place] == drawn])",
        "test_dask_ensembles.py -k bagging",
    ),
    Mutant(
        "149",
        "a row on the edge of the street counts as inside",
        "plotting/machines/margins.py",
        "margins[name] = np.where(edge, 1.0, values)",
        "margins[name] = values",
        "test_pictures.py -k margins or below_1",
    ),
    Mutant(
        "150",
        "expected calibration error: the mean over bins, not over rows",
        "plotting/machines/reliability.py",
        "error = float(counts[some] @ np.abs(share - said)) / len(p)",
        "error = float(np.abs(share - said).mean())",
        "test_pictures.py -k reliability",
    ),
    Mutant(
        "151",
        "points of a boosting round are as large as their share of all weight",
        "plotting/ensembles/boosting.py",
        "points, weight = plane.points, self.D[state] * len(plane.points)",
        "points, weight = plane.points, self.D[state]",
        "test_boosting.py -k pictures",
    ),
    Mutant(
        "152",
        "equal errors count as better",
        "plotting/ensembles/pairs.py",
        "return int((self.errors[:, 1] < self.errors[:, 0]).sum())",
        "return int((self.errors[:, 1] <= self.errors[:, 0]).sum())",
        "test_pictures.py test_bagging.py test_boosting.py -k pictures or display",
    ),
    Mutant(
        "153",
        "the labels that change least are drawn",
        "plotting/ensembles/words.py",
        'shown = np.sort(np.argsort(-change, kind="stable")[:_LABELS])',
        'shown = np.sort(np.argsort(change, kind="stable")[:_LABELS])',
        "test_word_stumps.py -k picture",
    ),
    Mutant(
        "154",
        "names of classes half a row off their block",
        "plotting/kernels/matrix.py",
        "middles = (np.concatenate([[0], self.ends[:-1]]) + self.ends - 1) / 2",
        "middles = (np.concatenate([[0], self.ends[:-1]]) + self.ends) / 2",
        "test_animations.py -k kernel_matrix",
    ),
    Mutant(
        "155",
        "the smallest round of a halving search forgets the classes",
        "selection/halving.py",
        "self.min_resources_ *= len(np.unique(y))",
        "pass",
        "test_search.py -k halving or same_as_of_scikit_learn",
    ),
    Mutant(
        "156",
        "candidates without a score survive a round of halving",
        "selection/halving.py",
        "order = np.roll(np.argsort(scores), np.count_nonzero(np.isnan(scores)))",
        "order = np.argsort(scores)",
        "test_search.py -k halving or failing",
    ),
    Mutant(
        "157",
        "a candidate is dropped that is behind on one split",
        "selection/evaluation.py",
        "(behind > margin).all(axis=1)",
        "(behind > margin).any(axis=1)",
        "test_search.py -k hopeless",
    ),
    Mutant(
        "158",
        "dropped candidates count as complete",
        "selection/evaluation.py",
        "return int((scored == self.n_splits).sum()) - self.n_pruned",
        "return int((scored == self.n_splits).sum())",
        "test_search.py -k hopeless or time_limit",
    ),
    Mutant(
        "159",
        "a row that a split draws twice counts once",
        "selection/data_set.py",
        "np.add.at(weight, place[train], rows.weight[train])",
        "weight[place[train]] = rows.weight[train]",
        "test_search.py -k splits",
    ),
    Mutant(
        "160",
        "the default grid of gamma ignores the variance of the data",
        "selection/svm_search.py",
        "unit = 1.0 / (X.shape[1] * (cpu.variance(X) or 1.0))",
        "unit = 1.0 / X.shape[1]",
        "test_search.py -k default_grids",
    ),
    Mutant(
        "161",
        "a scorer that asks for probabilities gets those of the fold's machine",
        "selection/held_out.py",
        'known &= self._probable or "proba" not in name',
        "pass",
        "test_search.py -k scor or probabilities",
    ),
    Mutant(
        "162",
        "a refit ignores the weights",
        "selection/search.py",
        "self._refit(estimator, X, y, manners.fit_params, place)",
        "self._refit(estimator, X, y, {}, place)",
        "test_search.py -k weights",
    ),
    Mutant(
        "163",
        "Novikoff's radius without the column of the intercept",
        "bounds/mistakes.py",
        "beta2 = float(row_norms(X, squared=True).max()) + (b is not None)",
        "beta2 = float(row_norms(X, squared=True).max())",
        "test_perceptron.py test_bounds.py -k bound or novikoff",
    ),
    Mutant(
        "164",
        "the margin bound forgets the column of the intercept",
        "bounds/margin.py",
        "squared_norm, trace = squared_norm + bias**2, trace + len(labels)",
        "squared_norm = squared_norm + bias**2",
        "test_bounds.py -k margin",
    ),
    Mutant(
        "165",
        "a bar is full after a fit that was stopped",
        "progress.py",
        "whole = self._whole and self.reason is None",
        "whole = self._whole",
        "test_long_work.py -k bar or ended",
    ),
    Mutant(
        "166",
        "explain counts slack from the edge before",
        "estimators/explanation.py",
        "self.counts[1:][self.edges[:-1] >= 1.0].sum()",
        "self.counts[1:][self.edges[1:] >= 1.0].sum()",
        "test_explain.py -k numbers or words",
    ),
    Mutant(
        "167",
        "the bound of more rounds of words begins at one again",
        "ensemble/words/booster.py",
        "bound, losses = found.start * np.cumprod(found.Z), found.losses",
        "bound, losses = np.cumprod(found.Z), found.losses",
        "test_word_stumps.py -k more_rounds or bound",
    ),
]


class Copy:
    """A copy of the project, in which mutants take turns, and what is compiled stays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("maxmargin", "tests", "benchmarks", "docs", "examples"):
            shutil.copytree(ROOT / name, folder / name)
        for name in ("conftest.py", "pyproject.toml", "README.md", "CONTRIBUTING.md"):
            shutil.copy(ROOT / name, folder / name)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Make the mistake, and mend it afterwards."""
        path = self.folder / "maxmargin" / mutant.file
        text, times = path.read_text(), path.stat()
        if text.count(mutant.right) != 1:
            raise ValueError(f"not once in {mutant.file}: {mutant.right}")
        with tempfile.TemporaryDirectory() as aside:
            kept = self._compiled_with(path)
            for number, file in enumerate(kept):
                shutil.move(file, f"{aside}/{number}")
            path.write_text(text.replace(mutant.right, mutant.wrong))
            try:
                yield
            finally:
                path.write_text(text)
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
                for file in self._compiled_with(path):
                    file.unlink()
                for number, file in enumerate(kept):
                    shutil.move(f"{aside}/{number}", file)

    def _compiled_with(self, changed: Path) -> list[Path]:
        """Return what Numba keeps of a file and of those that compile its functions into theirs."""
        texts = {path: path.read_text() for path in (self.folder / "maxmargin").rglob("*.py")}
        compiled = {path for path, text in texts.items() if "njit" in text}
        found, new = set(), {changed} & compiled
        while new:
            found |= new
            names = {one.parent.name if one.stem == "__init__" else one.stem for one in new}
            imports = re.compile(rf"^from .*\b({'|'.join(names)})\b", re.MULTILINE)
            new = {path for path in compiled - found if imports.search(texts[path])}
        return [
            file
            for path in found
            for file in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb?")
        ]

    def tested(self, arguments: list[str], stop: str = "-x") -> subprocess.CompletedProcess[str]:
        """Run some tests of both tiers, as a rule until the first failure."""
        pytest = ["sh", sys.executable, "-m", "pytest", "-q", "-n", "0", "--slow", stop]
        pytest += ["-p", "no:cacheprovider"]
        return subprocess.run(
            ["sh", "-c", f'ulimit -S -t {_SECONDS}; exec "$@"', *pytest, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )

    def noticed(self, mutant: Mutant, narrow: bool) -> str | None:
        """Return the test that fails with the mistake, or None."""
        files, keyword = mutant.tests.partition(" -k ")[::2]
        paths = [f"tests/{name}" for name in files.split()]
        with self.mutated(mutant):
            for more in [["-k", keyword]] * bool(keyword) + [[]] * (not (narrow and keyword)):
                found = self.tested([*paths, *more])
                if found.returncode:
                    break
            else:
                return None
        if found.returncode == -signal.SIGXCPU:
            return f"more than {_SECONDS} s"
        failed = [
            line for line in found.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
        ]
        if found.returncode != 1 or not failed:
            raise ValueError(f"no tests ran:\n{found.stdout[-2000:]}")
        return failed[0].partition(" ")[2].partition(" - ")[0]


def main() -> None:
    """Run the mutants that were asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="numbers")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--narrow", action="store_true", help="no more tests than -k names")
    options = parser.parse_args()
    chosen = options.only.split(",")
    wanted = [mutant for mutant in MUTANTS if not options.only or mutant.number in chosen]
    noticed: dict[str, str | None] = {}
    errors = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(Path(folder) / str(number)))

        def run(mutant: Mutant) -> None:
            copy = copies.get()
            try:
                said = noticed[mutant.number] = copy.noticed(mutant, options.narrow)
            except ValueError as error:
                errors.append(said := f"mutant {mutant.number}: {error}")
            finally:
                copies.put(copy)
            print(mutant.number, mutant.about, said or "SURVIVED", sep=" | ", flush=True)

        list(pool.map(run, wanted))
        names = {name for name in noticed.values() if name is not None and "::" in name}
        if names and (right := copies.get().tested(sorted(names), "--maxfail=9")).returncode:
            errors.append(f"Tests fail without a mistake, too:\n{right.stdout[-3000:]}")
    write(noticed)
    if errors:
        raise SystemExit("\n".join(errors))


def write(noticed: dict[str, str | None]) -> None:
    """Write the table, in which mutants that have not run keep their rows."""
    path = HERE / "results" / "mutations.md"
    rows = [line for line in path.read_text().splitlines() if re.match(r"\| \d+ \|", line)]
    known = {line.split()[1]: line for line in rows}
    for mutant in MUTANTS:
        if mutant.number in noticed:
            test = (noticed[mutant.number] or "**survived**").replace("|", "/")
            known[mutant.number] = f"| {mutant.number} | {mutant.about} ({mutant.file}) | {test} |"
    table = [known[mutant.number] for mutant in MUTANTS if mutant.number in known]
    killed = sum("**survived**" not in line for line in table)
    head = f"Noticed: {killed} of {len(table)} ({100 * killed / len(table):.0f} %)."
    print(head)
    title = "# Deliberate mistakes\n\n`python benchmarks/mutations.py`\n\n"
    columns = "| # | mistake | noticed by |\n|---|---|---|\n"
    path.write_text(f"{title}{head}\n\n{columns}" + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
