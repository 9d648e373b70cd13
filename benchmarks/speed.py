"""Speed against scikit-learn and scikit-learn-intelex: fit, predict, search, memory, cold start.

    pip install -e ".[bench]"
    python benchmarks/speed.py --data FOLDER [--quick] [--only svc,growth] [--repeats 3]

Every measurement is a process of its own (``measure.py``); those of the libraries take turns, and
medians are compared. No time is believed before the machine's dual objective and KKT violation are
recomputed in float64 (``dual.py``) and compared (``report.py``). What is measured is in
``workloads.py``, and what the data folder holds in ``data.py``.

Results are merged into ``speed.json`` after each workload, so a run that was stopped loses little
and ``--only`` refreshes its part; ``speed.md``, ``speed.svg`` and ``growth.svg`` are rewritten from
it. All go to ``benchmarks/results``, or with ``--quick`` to ``benchmarks/results/quick``. A whole
run takes some hours, nearly all of them the peers'.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict
from pathlib import Path

import cold
import data
from harness import HERE, RESULTS, Records, environment, run_once
from libraries import INTELEX, OURS, PEERS
from workloads import WORKLOADS, Workload

COLD = [f"cold/{size}" for size in cold.SIZES]


def main() -> None:
    """Measure what was asked for, and write the report."""
    options = _options()
    folder = options.output or RESULTS / ("quick" if options.quick else "")
    folder.mkdir(parents=True, exist_ok=True)
    records = Records(folder / "speed.json")
    for key in options.keys:
        print(f"{key}:", flush=True)
        records[key] = _record(key, options)
        records.save()
    _write_report(records, folder, options.quick)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data.add_option(parser)
    parser.add_argument("--output", type=Path, help="folder for the results")
    parser.add_argument("--only", default="", help="sections, workloads or section/workload")
    parser.add_argument("--quick", action="store_true", help="one repeat on small subsets")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer-repeats", type=int, help="default: as --repeats")
    parser.add_argument("--report", action="store_true", help="measure nothing, rewrite the report")
    options = parser.parse_args()
    if options.quick:
        options.repeats = 1
    options.peer_repeats = options.peer_repeats or options.repeats
    options.keys = [] if options.report else _chosen(options.only, parser)
    return options


def _chosen(only: str, parser: argparse.ArgumentParser) -> list[str]:
    """Keys that ``--only`` asks for: all, or those whose section, name or whole key is listed."""
    keys = [*WORKLOADS, *COLD]
    wanted = {item for item in only.split(",") if item}
    known = {part for key in keys for part in (key, *key.split("/"))}
    if unknown := wanted - known:
        parser.error(f"--only knows {', '.join(sorted(known))}; not {', '.join(sorted(unknown))}")
    return [key for key in keys if not wanted or wanted & {key, *key.split("/")}]


def _record(key: str, options: argparse.Namespace) -> dict:
    """Measure one workload with every library."""
    record = {
        "when": time.strftime("%Y-%m-%d %H:%M:%S"),
        "quick": options.quick,
        "load_average": os.getloadavg(),
        "environment": environment(),
    }
    if key in COLD:
        return {**record, "runs": cold.measure(key.partition("/")[2], options.repeats)}
    workload = WORKLOADS[key]
    return {**record, "workload": asdict(workload), "runs": _take_turns(workload, options)}


def _take_turns(workload: Workload, options: argparse.Namespace) -> dict[str, list[dict]]:
    """Run the libraries one after the other, again and again.

    A peer that failed is left out from then on; if we failed there is nothing to compare.
    """
    peers = (INTELEX,) if workload.section == "growth" else PEERS
    runs: dict[str, list[dict]] = {library: [] for library in (OURS, *peers)}
    for turn in range(max(options.repeats, options.peer_repeats)):
        for library, done in runs.items():
            repeats = options.repeats if library == OURS else options.peer_repeats
            failed = any("fit" not in run for run in runs[OURS] + done)
            if turn < repeats and not failed:
                done.append(_run(workload, library, options))
                print(f"  {library:22s} {_summary(done[-1])}", flush=True)
    return runs


def _run(workload: Workload, library: str, options: argparse.Namespace) -> dict:
    """One measurement in its own process, or the reason why there is none."""
    command = [str(HERE / "measure.py"), workload.key, library, *["--quick"] * options.quick]
    command += [] if options.data is None else ["--data", str(options.data)]
    return run_once(command, workload.limit)


def _summary(run: dict) -> str:
    if "fit" not in run:
        return run.get("error") or run["absent"]
    text = f"fit {run['fit']:8.3f} s"
    if run.get("predict"):
        text += f"   predict {run['predict']:7.3f} s"
    return "   ".join([text, *run["doubts"]])


def _write_report(results: dict, folder: Path, quick: bool) -> None:
    from pictures import draw  # after the measurements: it imports matplotlib
    from report import report

    text = report(results, quick)
    (folder / "speed.md").write_text(text)
    draw(results, folder, quick)
    print(f"\n{text}")


if __name__ == "__main__":
    main()
