"""Benchmarks in parts: measured one by one, each written down as soon as it is there."""

from __future__ import annotations

import argparse
from importlib import import_module

from data import add_option
from harness import RESULTS, Records, chosen, environment, in_words


def run_parts(about: str | None, name: str, modules: list[str]) -> None:
    """Measure the parts that are asked for, and write ``results/name.json`` and ``.md``.

    Each module has ``PARTS``: names with a function that measures, given the folder of the data,
    and one that writes a report of what it returned. Parts that are not asked for stay.
    """
    parts = {}
    for module in modules:
        parts |= import_module(module).PARTS
    parser = argparse.ArgumentParser(description=about)
    add_option(parser)
    parser.add_argument("--only", default="", help=f"some of {', '.join(parts)}")
    parser.add_argument("--list", action="store_true", help="say which parts there are, and end")
    given = parser.parse_args()
    if given.list:
        print("\n".join(parts))
        return
    records = Records(RESULTS / f"{name}.json")
    for part in chosen(given.only, parts, parser):
        measure, report = parts[part]
        records[part] = {"environment": environment(), "found": measure(given.data)}
        records.save()
        print(f"## {part}\n\n{report(records[part]['found'])}\n", flush=True)
    text = [f"# {name.capitalize()}", f"`python benchmarks/{name}.py --data FOLDER`"]
    for part, record in records.items():
        if part in parts:
            text += [f"## {part}", parts[part][1](record["found"]), in_words(record["environment"])]
    records.write("\n\n".join(text) + "\n")
