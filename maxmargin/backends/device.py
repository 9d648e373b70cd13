"""Which processor a fit runs on: what the user asked for, what there is, and why it was chosen.

Nothing here imports torch before a GPU is asked for. With ``TRITON_INTERPRET=1`` in the environment
``device="cuda"`` means the same code on torch's CPU tensors, its kernels run by Triton's
interpreter: how the tests look at the logic on a machine without a GPU.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

_INSTALL = 'pip install "maxmargin[gpu]"'
_NAME = re.compile(r"cpu|auto|cuda(:\d+)?")
_CAPABILITY = (7, 0)  # Triton's own limit
_WORTH = 3e10  # multiplications from which a GPU gains more than starting it costs


class DeviceError(RuntimeError):
    """The GPU that was asked for cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Placement:
    """Where a fit runs, and why there.

    Attributes
    ----------
    device : str
        ``"cpu"`` or torch's name of the GPU.
    why : str
        The reason, in words.
    """

    device: str
    why: str

    def __str__(self) -> str:
        return f"{self.device}: {self.why}"

    @property
    def on_gpu(self) -> bool:
        """Whether the work is torch's."""
        return self.device != "cpu"


def place(device: str, n: int, width: int, *, blocked: str | None = None) -> Placement:
    """Decide where to work on the kernel matrix of n points with so many features.

    Parameters
    ----------
    device : str
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``... or ``"auto"``.
    n, width : int
    blocked : str, optional
        Why this work cannot be done on a GPU at all, as a sentence.

    Examples
    --------
    >>> place("cpu", 100, 10)
    Placement(device='cpu', why='as asked for')
    >>> print(place("auto", 100, 10))
    cpu: 100 rows of 10 features are too little work for a GPU
    """
    if not _NAME.fullmatch(device):
        raise ValueError(
            f"device must be 'cpu', 'cuda', 'cuda:0', 'cuda:1', ... or 'auto'; got {device!r}."
        )
    if device == "cpu":
        return Placement("cpu", "as asked for")
    if device == "auto":
        if blocked:
            return Placement("cpu", blocked)
        if float(n) * n * (width + 32) < _WORTH:
            return Placement("cpu", f"{n:,} rows of {width} features are too little work for a GPU")
        problem = _problem("cuda")
        if problem:
            return Placement("cpu", problem)
        return Placement("cuda:0", f"{n:,} rows of {width} features are worth a GPU")
    if blocked:
        raise DeviceError(f"{blocked} Use device='cpu'.")
    problem = _problem(device)
    if problem:
        raise DeviceError(f"device={device!r} cannot be used: {problem}")
    return Placement(device if ":" in device else "cuda:0", "as asked for")


@contextmanager
def explaining_memory() -> Iterator[None]:
    """Say in words that a GPU has run out of memory, and what to do."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # torch's; torch may not be there
            raise
        raise DeviceError(
            "The GPU has run out of memory: another process may hold some of it. Use a smaller "
            f"cache_size (MB on the GPU) or device='cpu'. ({str(error).splitlines()[0]})"
        ) from error


def on_host(tensor: Any) -> np.ndarray:
    """Copy a tensor to the host; where that is its device, too, a copy nevertheless."""
    return tensor.cpu().numpy() if tensor.is_cuda else tensor.numpy().copy()


def interpreted() -> bool:
    """Whether Triton's interpreter plays the GPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def _problem(device: str) -> str | None:
    """What keeps a GPU from being used, in words; None if nothing does."""
    for module in ("torch", "triton"):
        if find_spec(module) is None:
            return f"{module} is not installed. Install what a GPU needs with {_INSTALL}"
    if interpreted():
        return None
    import torch

    if torch.version.cuda is None:
        return (
            f"torch {torch.__version__} was built without CUDA. Install a build that has it, see "
            "https://pytorch.org/get-started"
        )
    if not torch.cuda.is_available():
        return (
            "torch finds no NVIDIA GPU here. Look whether `nvidia-smi` shows one and whether its "
            f"driver is new enough for CUDA {torch.version.cuda}"
        )
    index = int(device.partition(":")[2] or 0)
    if index >= torch.cuda.device_count():
        return f"there are {torch.cuda.device_count()} GPUs, counted from cuda:0"
    capability = torch.cuda.get_device_capability(index)
    if capability < _CAPABILITY:
        return (
            f"{torch.cuda.get_device_name(index)} has compute capability "
            f"{capability[0]}.{capability[1]}; the kernels need {_CAPABILITY[0]}.{_CAPABILITY[1]}"
        )
    try:
        torch.empty(1, device=f"cuda:{index}")
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        return f"the GPU gives no memory to this process; another may hold it ({reason})"
    return None
