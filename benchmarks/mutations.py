"""Deliberate mistakes, one at a time, and whether the tests notice.

    python benchmarks/mutations.py [--only 01,17] [--jobs 2]

Each mutant is one edit of one file, in a copy of the project; the tests that should notice run
there until the first failure, and the test that failed once more without the mistake. Who changes
a file that a mutant names gets an error here, and says the mistake anew. Results go to
``results/mutations.md``, where those that do not run this time keep their rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


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
        "joblib.hash((X, kernel, [",
        "joblib.hash((X, [",
        "test_long_work.py",
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
        "part, own = problem.restricted(near).variables, number[near]",
        "part, own = problem.restricted(near).variables, np.full(len(near), -1)",
        "test_parity.py",
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
        "if len(known) > self.limit or self._bytes > self.max_bytes:",
        "if False:",
        "test_driver.py",
    ),
    Mutant(
        "45",
        "a listener cannot stop a run",
        "solvers/driver.py",
        "ended = run.status or self.monitor.stopped()",
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
        "return int(used.sum() - bounded.sum()), int(bounded.sum())",
        "return int(used.sum()), int(bounded.sum())",
        "test_explain.py",
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
        "(found > best - tie and f < best_feature)",
        "(found > best - tie and f > best_feature)",
        "test_trees.py",
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
]


def noticed(mutant: Mutant) -> str | None:
    """Name of the test that fails with the mistake, or None."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        # Compiled code is kept with its files, but what is compiled into other files is not renewed
        left_out = ["__pycache__"] if mutant.file.startswith("backends") else []
        for name in ("maxmargin", "tests", "benchmarks", "docs", "examples"):
            ignored = shutil.ignore_patterns(*left_out)
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        for name in ("conftest.py", "pyproject.toml", "README.md", "CONTRIBUTING.md"):
            shutil.copy(ROOT / name, copy / name)
        path = copy / "maxmargin" / mutant.file
        text = path.read_text()
        if text.count(mutant.right) != 1:
            raise SystemExit(f"mutant {mutant.number}: not once in {mutant.file}: {mutant.right}")
        path.write_text(text.replace(mutant.right, mutant.wrong))
        found = tested(copy, [f"tests/{name}" for name in mutant.tests.split()])
        if found.returncode == 0:
            return None
        failed = [
            line for line in found.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
        ]
        if found.returncode != 1 or not failed:
            raise SystemExit(f"mutant {mutant.number}: no tests ran:\n{found.stdout[-2000:]}")
        name = failed[0].split(" ")[1]
        path.write_text(text)
        if left_out:
            for kept in list(copy.rglob("__pycache__")):
                shutil.rmtree(kept)
        if tested(copy, [name.split("[")[0]]).returncode != 0:
            raise SystemExit(f"mutant {mutant.number}: {name} fails without the mistake, too.")
    return name


def tested(copy: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Run some tests in a copy of the project, until the first failure."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )


def main() -> None:
    """Run the mutants that were asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="numbers")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    wanted = [mutant for mutant in MUTANTS if not options.only or mutant.number in options.only]

    def run(mutant: Mutant) -> str:
        test = noticed(mutant)
        line = f"| {mutant.number} | {mutant.about} ({mutant.file}) | {test or '**survived**'} |"
        print(line, flush=True)
        return line

    with ThreadPoolExecutor(options.jobs) as pool:
        lines = list(pool.map(run, wanted))
    path = HERE / "results" / "mutations.md"
    known = {line[2:4]: line for line in path.read_text().splitlines() if line[2:4].isdigit()}
    known |= {line[2:4]: line for line in lines}
    table = [known[mutant.number] for mutant in MUTANTS if mutant.number in known]
    killed = sum("**survived**" not in line for line in table)
    head = f"Noticed: {killed} of {len(table)} ({100 * killed / len(table):.0f} %)."
    print(head)
    title = "# Deliberate mistakes\n\n`python benchmarks/mutations.py`\n\n"
    columns = "| # | mistake | noticed by |\n|---|---|---|\n"
    path.write_text(f"{title}{head}\n\n{columns}" + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
