"""The examples of CONTRIBUTING.md run, and are as short as it says."""

import importlib
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
EXAMPLES = {
    title: (int(lines), code)
    for title, lines, code in re.findall(
        r"^### (A[^\n]*?), in (\d+) lines[^\n]*\n.*?^```python\n(.*?)^```$",
        PAGE,
        re.MULTILINE | re.DOTALL,
    )
}


def test_all_of_them_are_found():
    assert len(EXAMPLES) == PAGE.count("```python")


@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example(title, tmp_path, monkeypatch):
    mpl.use("Agg")
    lines, code = EXAMPLES[title]
    assert len([line for line in code.splitlines() if line.strip()]) <= lines
    name = re.sub(r"\W", "_", title)
    (tmp_path / f"{name}.py").write_text(code)  # a module, so that its classes can be pickled
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(name)
    plt.close("all")
