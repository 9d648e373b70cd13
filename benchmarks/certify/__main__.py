"""Judge random problems and print a table: see `benchmarks.certify`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import benchmarks.certify
from benchmarks.certify import runner
from benchmarks.certify.families import family_of, names, problem
from benchmarks.certify.judge import KINDS, Verdict, judge


def table(verdicts: list[Verdict]) -> str:
    """Return a table by family, and a line for each problem that failed."""
    head = ["family", "problems", "converged", *KINDS, "worst ratio", "slowest", "mean"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for name in [*names(), "all"]:
        own = [verdict for verdict in verdicts if name in ("all", verdict.family)]
        if not own:
            continue
        kinds = Counter(verdict.kind for verdict in own)
        numbers = [len(own), sum(verdict.converged for verdict in own), *map(kinds.get, KINDS)]
        seconds = [verdict.seconds for verdict in own]
        row = [str(number or 0) for number in numbers]
        row += [f"{max(verdict.ratio for verdict in own):.3g}", f"{max(seconds):.1f} s"]
        row += [f"{1e3 * sum(seconds) / len(own):.0f} ms"]
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    failed = sorted((v for v in verdicts if v.failed), key=lambda v: (v.family, v.seed))
    if failed:
        lines += ["", "Failed:", ""]
        lines += [f"- {v.family} {v.seed}, {v.kind}: {' '.join(v.text.split())}" for v in failed]
    return "\n".join(lines)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=benchmarks.certify.__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--family", default="", choices=["", *names()], help="of all problems")
    parser.add_argument("--seed-only", type=int, help="judge this one, in words")
    parser.add_argument("--max-seconds", type=float, default=float("inf"))
    parser.add_argument("--json", type=Path, help="write counts and failures to this file")
    options = parser.parse_args()
    os.environ.setdefault("TRITON_INTERPRET", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background
    if options.seed_only is not None:
        family = options.family or family_of(options.seed_only)
        made = problem(options.seed_only, family)
        print(f"{family}: {made.about}", flush=True)
        verdict = judge(made, options.seed_only, family)
        print(f"{verdict.kind}, {verdict.seconds:.2f} s, ratio {verdict.ratio:.3g}\n{verdict.text}")
        return int(verdict.failed)
    started, done = time.monotonic(), Counter()

    def report(verdict: Verdict) -> None:
        done[verdict.kind] += 1
        if verdict.failed:
            what = f"{verdict.family} {verdict.seed}, {verdict.kind}"
            print(f"{what}: {verdict.text}", flush=True)
        if done.total() % 500 == 0:
            said = ", ".join(f"{kind} {count}" for kind, count in done.items())
            print(f"{time.monotonic() - started:.0f} s: {said}", file=sys.stderr, flush=True)

    seeds = range(options.seed, options.seed + options.problems)
    tasks = ((seed, options.family or family_of(seed)) for seed in seeds)
    verdicts = runner.run(tasks, options.jobs, options.max_seconds, report)
    text = table(verdicts)
    print(text)
    if options.json:
        failed = [asdict(verdict) for verdict in verdicts if verdict.failed]
        counts = Counter(f"{verdict.family}: {verdict.kind}" for verdict in verdicts)
        found = {"options": sys.argv[1:], "counts": dict(counts), "failed": failed, "table": text}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(any(verdict.failed for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
