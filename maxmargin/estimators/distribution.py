"""Where a machine was fitted to Dask collections; here, since it goes wherever the machine does."""

from __future__ import annotations

from dataclasses import dataclass, field

from maxmargin import memory


@dataclass
class Distribution:
    """Where a machine was fitted, and what that took.

    Attributes
    ----------
    where : str
        The scheduler's address, or which of Dask's local schedulers.
    workers, partitions, rows : int
    rounds : int
        Passes over the partitions that were waited for.
    bytes_to_workers, bytes_between, bytes_to_client : int
        What was sent to all workers, from partitions to whoever puts them together, and back to
        the process that fits; the data themselves, which stay where they are, are not counted.
    kept : bool
        Whether the workers kept the rows, or read them again in every pass.
    notes : list of str
    """

    where: str = ""
    workers: int = 0
    partitions: int = 0
    rows: int = 0
    rounds: int = 0
    bytes_to_workers: int = 0
    bytes_between: int = 0
    bytes_to_client: int = 0
    kept: bool = True
    notes: list[str] = field(default_factory=list)

    @property
    def bytes_moved(self) -> int:
        """All of these bytes."""
        return self.bytes_to_workers + self.bytes_between + self.bytes_to_client

    def __str__(self) -> str:
        rows = "kept by the workers" if self.kept else "read again in every pass"
        said = (
            f"{self.rows:,} rows in {self.partitions} partitions, {rows}, on {self.workers} "
            f"worker(s) of {self.where}: {self.rounds} rounds, {memory.megabytes(self.bytes_moved)}"
            " moved"
        )
        return ". ".join([said, *self.notes])
