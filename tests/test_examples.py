"""Every script of the gallery runs, quickly and without a warning, and is on its page."""

import runpy
import time
from pathlib import Path

import pytest

GALLERY = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "gallery.py"))
EXAMPLES = GALLERY["examples"]()
SECONDS = 20.0  # of CPU, once all is compiled: 5 on the fastest machine seen, 9 on the slowest


def run(example):
    """Return the figures and how long they took."""
    start = time.process_time()
    return example.run(), time.process_time() - start


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path.stem)
def test_an_example(example):
    figures, seconds = run(example)
    if seconds > SECONDS:  # the first one compiles what the others load
        figures, seconds = run(example)
    assert seconds < SECONDS
    assert figures
    for figure in figures:
        assert any(ax.has_data() for ax in figure.axes)
        figure.canvas.draw()  # what cannot be laid out warns here


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path.stem)
def test_its_form(example):
    """As sphinx-gallery reads it: a title, some sentences, cells, and a picture in the end."""
    text = example.path.read_text()
    lines = text.splitlines()
    assert lines[1] == "=" * len(example.title)
    assert "# %%" in lines
    assert lines[-1] == "plt.show()"
    assert len(lines) <= 90


def test_the_page_is_that_of_the_scripts():
    """After a new script or title: python examples/gallery.py, with the script's name."""
    scripts = set((GALLERY["EXAMPLES"]).rglob("plot_*.py"))
    assert {example.path for example in EXAMPLES} == scripts  # or a folder is not in TOPICS
    assert GALLERY["PAGE"].read_text() == GALLERY["page"]()
    thumbnails = {example.thumbnail for example in EXAMPLES}
    assert set(GALLERY["THUMBNAILS"].iterdir()) == thumbnails
    for path in thumbnails:
        assert path.stat().st_size < (200_000 if path.suffix == ".gif" else 25_000)
