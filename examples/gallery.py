"""Runs the examples and writes docs/gallery.md with its thumbnails: ``python examples/gallery.py``.

With words, as in ``python examples/gallery.py perceptron street``, only the examples whose path has
one of them are run anew; the page lists all of them in any case.
"""

from __future__ import annotations

import contextlib
import re
import runpy
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from unittest.mock import patch

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

EXAMPLES = Path(__file__).resolve().parent
PAGE = EXAMPLES.parent / "docs" / "gallery.md"
THUMBNAILS = PAGE.parent / "images" / "gallery"
TOPICS = (  # in the order of the page, which is that of the lecture
    *("perceptron", "margins", "duality", "kernels", "solvers"),
    *("regression", "losses", "regularisation", "several_classes", "ensembles"),
)
WIDTH, COLUMNS, COLOURS = 320, 3, 128  # pixels of a thumbnail; of them in a row; in each
HEAD = """# Gallery

Each picture is drawn by a short script that runs as it is (`pip install "maxmargin[plot]"`, then
`python examples/perceptron/plot_snapshots.py`). What the functions in it take is in
[pictures.md](pictures.md). `python examples/gallery.py` writes this page.
"""


@dataclass(frozen=True)
class Example:
    """A script of the gallery: what its docstring and its comments say of it."""

    path: Path

    @property
    def title(self) -> str:
        """The first line of its docstring."""
        return _heading(self.path)[0].removeprefix('"""')

    @property
    def thumbnail(self) -> Path:
        """Where its small picture is."""
        name = f"{self.path.parent.name}_{self.path.stem.removeprefix('plot_')}"
        return THUMBNAILS / (name + (".gif" if self.is_film else ".png"))

    @property
    def is_film(self) -> bool:
        """Whether it writes a film, which is then its thumbnail."""
        return "film.save(" in self.path.read_text()

    @property
    def figures(self) -> list[tuple[str, str]]:
        """The figures of the lecture that it draws: ``# Lecture 000: this; that`` in its text."""
        lines = re.findall(r"^# Lecture (\d{3}): (.*)$", self.path.read_text(), re.MULTILINE)
        return [(part, figure) for part, figures in lines for figure in figures.split("; ")]

    def run(self, folder: str | None = None) -> list[Figure]:
        """Run the script without a screen in a folder and return what it has drawn."""
        plt.switch_backend("Agg")
        plt.close("all")
        with (
            tempfile.TemporaryDirectory() as own,
            contextlib.chdir(folder or own),
            patch.object(plt, "show", lambda *args, **options: None),
        ):
            runpy.run_path(str(self.path), run_name="__main__")
        return [plt.figure(number) for number in plt.get_fignums()]

    def write_thumbnail(self) -> None:
        """Keep its film, its first figure or that of ``sphinx_gallery_thumbnail_number = 2``."""
        self.thumbnail.parent.mkdir(exist_ok=True)
        if self.is_film:
            with tempfile.TemporaryDirectory() as folder:
                self.run(folder)
                shutil.copy(next(Path(folder).glob("*.gif")), self.thumbnail)
            return
        number = re.search(r"sphinx_gallery_thumbnail_number = (-?\d+)", self.path.read_text())
        drawn, which = self.run(), int(number[1]) if number else 1
        large = BytesIO()
        drawn[which - 1 if which > 0 else which].savefig(large, dpi=200)
        picture = Image.open(large).convert("RGB")
        height = round(WIDTH * picture.height / picture.width)
        small = picture.resize((WIDTH, height), Image.Resampling.LANCZOS)
        small.quantize(COLOURS, Image.Quantize.FASTOCTREE).save(self.thumbnail, optimize=True)
        plt.close("all")


def examples() -> list[Example]:
    """Return all scripts, in the order of the page."""
    paths = sorted(EXAMPLES.glob("*/plot_*.py"))
    return [Example(path) for topic in TOPICS for path in paths if path.parent.name == topic]


def page() -> str:
    """Return the gallery's text: topics with their pictures, then the lecture's figures."""
    found, text = examples(), [HEAD]
    for topic in TOPICS:
        cells = [_cell(example) for example in found if example.path.parent.name == topic]
        if cells:
            title, said = _heading(EXAMPLES / topic / "README.rst")
            text += [f"## {title}\n", f"{said}\n", _table(cells)]
    text += [
        "## Figures of the lecture\n",
        "Parts as in [decision 0001](decisions/0001-where-the-seeds-err.md).\n",
    ]
    text += ["| part | figure | script |\n|---|---|---|"]
    drawn = sorted((part, figure, _link(one)) for one in found for part, figure in one.figures)
    return "\n".join([*text, *("| " + " | ".join(row) + " |" for row in drawn)]) + "\n"


def _heading(path: Path) -> tuple[str, str]:
    """Return the title of a text and the paragraph below its underline, as one line."""
    title, _, rest = path.read_text().split("\n", 2)
    return title, " ".join(rest.strip().split("\n\n")[0].split())


def _link(example: Example) -> str:
    return f"[{example.path.name}](../{example.path.relative_to(EXAMPLES.parent).as_posix()})"


def _cell(example: Example) -> str:
    image = example.thumbnail.relative_to(PAGE.parent).as_posix()
    return f"![{example.title}]({image})<br>{example.title}<br>{_link(example)}"


def _table(cells: list[str]) -> str:
    rows = [cells[i : i + COLUMNS] for i in range(0, len(cells), COLUMNS)]
    head = "| " + " | ".join([" "] * COLUMNS) + " |\n" + "|---" * COLUMNS + "|\n"
    return head + "".join(f"| {' | '.join(row + [''] * (COLUMNS - len(row)))} |\n" for row in rows)


def main(words: list[str]) -> None:
    """Write the page, and the thumbnails of those examples whose path has one of the words."""
    for example in examples():
        name = example.path.relative_to(EXAMPLES).as_posix()
        if not words or any(word in name for word in words):
            start = time.process_time()
            example.write_thumbnail()
            kilobytes = example.thumbnail.stat().st_size / 1000
            print(f"{name:50} {time.process_time() - start:5.1f} s {kilobytes:5.1f} kB", flush=True)
    PAGE.write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
