"""Checkpoints: the variables of a fit on disk, for a process that was killed to go on from."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import joblib
import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.progress import DualProgress

INTERVAL = 30.0


class Checkpoint:
    """Writes where a fit is, every half a minute, and reads it back.

    The file belongs to one set of problems over one data set and kernel, and says which by a
    fingerprint. It is replaced as a whole: whenever the process dies, the last state is there.
    """

    def __init__(self, path: Any, X: Any, kernel: Any, problems: Sequence[DualProblem]) -> None:
        self.path = Path(path)
        self.alphas = [problem.start for problem in problems]
        if not self.path.parent.is_dir():
            raise ValueError(f"There is no folder {self.path.parent} to keep the checkpoint in.")
        try:
            self.fingerprint = joblib.hash((X, kernel, [_posed(problem) for problem in problems]))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"A checkpoint must know its kernel again, and {kernel!r} cannot be pickled: "
                "define its function at the top of a module, not as a lambda or inside another."
            ) from error
        self.written = 0.0

    def __call__(self, progress: DualProgress) -> None:
        """Take the state of one problem in, and write all of them if it is time."""
        self.alphas[progress.problem] = progress.alpha
        if progress.seconds - self.written >= INTERVAL:
            self.written = progress.seconds
            for k, alpha in progress.others().items():
                self.alphas[k] = alpha
            self.write(self.alphas)

    def write(self, alphas: Sequence[np.ndarray]) -> None:
        """Replace the file."""
        temporary = self.path.with_name(self.path.name + ".tmp")
        with temporary.open("wb") as file:
            arrays: dict[str, Any] = {f"alpha{k}": alpha for k, alpha in enumerate(alphas)}
            np.savez(file, fingerprint=np.array(self.fingerprint), **arrays)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)

    def read(self) -> list[np.ndarray] | None:
        """Return the variables that a process left, or None where there is no file."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                fingerprint = str(file["fingerprint"])
                alphas = [file[f"alpha{k}"] for k in range(len(file.files) - 1)]
        except (OSError, EOFError, BadZipFile, ValueError, KeyError) as error:
            raise ValueError(f"{self.path} is not a checkpoint of a fit: {error}") from error
        if fingerprint != self.fingerprint:
            raise ValueError(
                f"The checkpoint {self.path} belongs to another fit: its data, kernel, costs or "
                "weights differ from these. Give the same ones to go on with it, delete it to "
                "begin anew, or choose another path."
            )
        return alphas

    def remove(self) -> None:
        """Delete the file: the fit is complete."""
        self.path.unlink(missing_ok=True)


def _posed(problem: DualProblem) -> tuple:
    """Everything that defines a problem but where it starts."""
    sums = [
        float(problem.coefficient[member] @ problem.start[member])
        for member in (problem.group == j for j in range(problem.n_groups))
    ]
    arrays = (problem.gram_row, problem.sign, problem.linear, problem.lower, problem.upper)
    return (*arrays, problem.coefficient, problem.group, np.array(sums), problem.hard)
