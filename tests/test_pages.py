"""The code blocks of the pages run, one after the other, and print what stands below them."""

import re
import sys
import types
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- ([^\n]*) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md")))
    if "```python" in path.read_text(encoding="utf-8")
]
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def blocks(path):
    """Yield each block of code, from its line on, with what is printed below it, or None."""
    page = path.read_text(encoding="utf-8")
    found = list(BLOCK.finditer(page))
    for k, block in enumerate(found):
        remark, kind, code = block[2] or "", block[3], block[4]
        if kind != "python" or remark.startswith("not run: "):
            continue
        after = found[k + 1] if k + 1 < len(found) else None
        printed = (
            after is not None
            and after[3] == "text"
            and not page[block.end() : after.start()].strip()
        )
        line = page.count("\n", 0, block.start(4))
        yield "\n" * line + code, after[4] if printed else None


def same(said, printed):
    """Whether two texts have the same words, and the numbers agree to a part in ten."""
    ours, theirs = ([float(x) for x in NUMBER.findall(text)] for text in (said, printed))
    return NUMBER.sub("#", said).split() == NUMBER.sub(
        "#", printed
    ).split() and ours == pytest.approx(theirs, rel=0.1, abs=1e-6)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = types.ModuleType(f"page_{path.stem}")
    monkeypatch.setitem(sys.modules, page.__name__, page)  # so that its classes can be pickled
    for code, printed in blocks(path):
        exec(compile(code, str(path), "exec"), page.__dict__)
        plt.close("all")
        said = capsys.readouterr().out
        assert printed is None or same(said, printed), f"{path.name} prints\n{said}\nnot\n{printed}"


def test_the_examples_of_contributing_are_as_short_as_it_says():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.findall(r"^### A[^\n]*, in (\d+) lines.*?^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(found) == page.count("```python")
    for lines, code in found:
        assert len([line for line in code.splitlines() if line.strip()]) <= int(lines)


def test_the_readme_names_every_page():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"docs/(\w+\.md)", readme))
    assert {path.name for path in ROOT.glob("docs/*.md")} <= named
