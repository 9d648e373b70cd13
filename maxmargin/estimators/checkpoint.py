"""Checkpoints: the variables of a fit on disk, for a process that was killed to go on from."""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import joblib
import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.estimators.warn import warn
from maxmargin.progress import Progress

_UNREADABLE = (OSError, EOFError, BadZipFile, zlib.error, KeyError, MemoryError, RuntimeError)


class CheckpointError(ValueError):
    """A file that a fit cannot go on from."""


class StateFile:
    """Arrays of a fit on disk, which belong to one problem, and say to which by a fingerprint.

    The file is replaced as a whole: whenever the process dies, the last state is there. Whether it
    can be written is tried before the work. A disk that fails later costs the file, with a warning,
    and not the fit.
    """

    def __init__(self, path: Any, kernel: Any, *identity: Any) -> None:
        self.path, self.failed = Path(path), False
        self.temporary = self.path.with_name(self.path.name + ".tmp")
        if not self.path.parent.is_dir():
            raise ValueError(f"There is no folder {self.path.parent} to keep the checkpoint in.")
        try:
            self.temporary.touch()
            self.temporary.unlink()
            if self.path.is_dir():
                raise IsADirectoryError("it is a folder")
        except OSError as error:
            raise ValueError(
                f"The checkpoint {self.path} cannot be written ({error.strerror or error}): give a "
                "path in a folder that can be written to."
            ) from error
        try:
            self.fingerprint = joblib.hash((*identity[:1], kernel, *identity[1:]))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"A checkpoint must know its kernel again, and {kernel!r} cannot be pickled: "
                "define its function at the top of a module, not as a lambda or inside another."
            ) from error

    def write_arrays(self, arrays: dict[str, Any]) -> None:
        """Replace the file; if that fails, say so once and leave it at that."""
        if self.failed:
            return
        try:
            with self.temporary.open("wb") as file:
                np.savez(file, fingerprint=np.array(self.fingerprint), **arrays)
                file.flush()
                os.fsync(file.fileno())
            self.temporary.replace(self.path)
        except OSError as error:
            self.failed = True
            warn(
                f"The checkpoint {self.path} could not be written ({error.strerror or error}): the "
                "fit goes on without one.",
                UserWarning,
            )
        finally:
            self._clear()

    def read_arrays(self, names: Sequence[str]) -> list[np.ndarray] | None:
        """Return the arrays that a process left, or None where there is no file."""
        if not self.path.exists():
            return None
        try:
            file = np.load(self.path, allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise self._not_a_checkpoint("it holds a single array")
            with file:
                fingerprint = str(file["fingerprint"])
                if fingerprint != self.fingerprint:
                    raise self._of_another_fit()
                return [file[name] for name in names]
        except CheckpointError:
            raise
        except ValueError as error:
            raise self._not_a_checkpoint("it holds something other than numbers") from error
        except _UNREADABLE as error:
            raise self._not_a_checkpoint(str(error) or type(error).__name__) from error

    def _not_a_checkpoint(self, why: str) -> CheckpointError:
        return CheckpointError(
            f"{self.path} is not a checkpoint of a fit: {why}. Delete it to begin anew, or choose "
            "another path."
        )

    def _of_another_fit(self) -> CheckpointError:
        return CheckpointError(
            f"The checkpoint {self.path} belongs to another fit: its data, kernel, costs or "
            "weights differ from these. Give the same ones to go on with it, delete it to "
            "begin anew, or choose another path."
        )

    def remove(self) -> None:
        """Delete the file: the fit is complete."""
        self.path.unlink(missing_ok=True)
        self._clear()

    def _clear(self) -> None:
        """Delete a temporary file that was left half written (disk full, interrupt, kill)."""
        with suppress(OSError):
            self.temporary.unlink(missing_ok=True)


class Checkpoint(StateFile):
    """Writes where a fit is, every so many seconds, and reads it back.

    The file belongs to one set of problems over one data set and kernel.
    """

    def __init__(
        self,
        path: Any,
        X: Any,
        kernel: Any,
        problems: Sequence[DualProblem],
        interval: float = 30.0,
    ) -> None:
        super().__init__(path, kernel, X, [_posed(problem) for problem in problems])
        self.interval, self.written = interval, 0.0
        self.betas = [problem.start for problem in problems]

    def __call__(self, progress: Progress) -> None:
        """Take the state of one problem in, and write all of them if it is time."""
        if progress.variables is not None:
            self.betas[progress.problem] = progress.variables
        if progress.seconds - self.written >= self.interval:
            self.written = progress.seconds
            for k, beta in progress.others().items():
                self.betas[k] = beta
            self.write(self.betas)

    def write(self, betas: Sequence[np.ndarray]) -> None:
        """Replace the file."""
        self.write_arrays({f"beta{k}": beta for k, beta in enumerate(betas)})

    def read(self) -> list[np.ndarray] | None:
        """Return the variables that a process left, or None where there is no file."""
        betas = self.read_arrays([f"beta{k}" for k in range(len(self.betas))])
        if betas is None:
            return None
        for k, (beta, known) in enumerate(zip(betas, self.betas, strict=True)):
            if beta.shape != known.shape or beta.dtype != known.dtype:
                found = f"{beta.dtype} of shape {beta.shape}"
                raise self._not_a_checkpoint(f"the variables of problem {k} are {found}")
            if not np.isfinite(beta).all():
                raise self._not_a_checkpoint(f"the variables of problem {k} are not all finite")
        return betas


def _posed(problem: DualProblem) -> tuple:
    """Everything that defines a problem but where it starts."""
    sums = [
        float(problem.start[member].sum())
        for member in (problem.group == j for j in range(problem.n_groups))
    ]
    arrays = (problem.gram_row, problem.orientation, problem.linear, problem.lower, problem.upper)
    return (*arrays, problem.group, np.array(sums), problem.hard)
