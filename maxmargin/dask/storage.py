"""Rows in files as Dask arrays: each block is read by the worker that needs it, when it does.

``read_npy`` reads the rows of ``.npy`` files, ``read_svmlight`` svmlight (LIBSVM) files in pieces
of some bytes. Nothing is held but the names of the files: a pass over the rows reads each block
once, and forgets it. Parquet and Zarr have readers of Dask's own (``dask.dataframe.read_parquet``,
``dask.array.from_zarr``), which are as good.

All workers must see the files under the names that were given.
"""

from __future__ import annotations

import glob
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.base import tokenize
from dask.utils import parse_bytes
from sklearn.datasets import load_svmlight_file

Paths = str | Path | Sequence[str | Path]
_BLOCK = "64 MB"  # of a file that a task reads: a hundred of them fit a worker, tasks stay few
_COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")


def read_npy(paths: Paths, *, rows: int | None = None, blocksize: int | str = _BLOCK) -> da.Array:
    """Return the rows of ``.npy`` files, one after the other, as a Dask array.

    A block is read from its file when a task needs it, and only that: of the header everything is
    known beforehand. Files in Fortran order and of any type are read as they are. Read X and y
    with the same ``rows``, so that their blocks belong together.

    Parameters
    ----------
    paths : str, Path or sequence of these
        A file, several, or a pattern with ``*``; a pattern's files are taken in order of name.
    rows : int, optional
        Rows of a block; by default as many as ``blocksize`` has.
    blocksize : int or str, default="64 MB"
        Bytes of a block.

    Returns
    -------
    X : dask.array.Array

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from maxmargin.dask import read_npy
    >>> name = os.path.join(tempfile.mkdtemp(), "X.npy")
    >>> np.save(name, np.arange(12.0).reshape(6, 2))
    >>> X = read_npy(name, rows=4)
    >>> X.chunks, float(X.sum().compute())
    (((4, 2), (2,)), 66.0)
    """
    if rows is not None and rows < 1:
        raise ValueError(f"rows must be 1 at least, the rows of a block, got {rows!r}.")
    headers = [_npy_header(name) for name in _files(paths)]
    first = headers[0]
    for other in headers[1:]:
        if (other.shape[1:], other.dtype) != (first.shape[1:], first.dtype):
            raise ValueError(
                f"{other.name} has rows of shape {other.shape[1:]} and type {other.dtype}, and "
                f"{first.name} has {first.shape[1:]} and {first.dtype}: the files of a data set "
                "must be alike. Read those that are, or save the others again."
            )
    wide = int(np.prod(first.shape[1:], dtype=np.int64)) * first.dtype.itemsize
    step = rows or max(int(parse_bytes(blocksize)) // max(wide, 1), 1)
    token = tokenize([(h.name, Path(h.name).stat().st_mtime_ns) for h in headers], step)
    blocks = []
    for number, header in enumerate(headers):
        for start in range(0, header.shape[0], step):
            stop = min(start + step, header.shape[0])
            key = f"read-npy-{token}-{number}-{start}"
            part = dask.delayed(_npy_rows)(header, start, stop, dask_key_name=key)
            shape = (stop - start, *first.shape[1:])
            blocks.append(da.from_delayed(part, shape=shape, dtype=first.dtype))
    return da.concatenate(blocks)


class _Npy(NamedTuple):
    """What the header of a ``.npy`` file says, and where the numbers begin."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    offset: int


def _npy_header(name: str) -> _Npy:
    with open(name, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = getattr(np.lib.format, f"read_array_header_{version[0]}_{version[1]}", None)
            if read is None:  # version 3.0: fields whose names are not ASCII
                raise ValueError(f"its version is {version}, of records and not of numbers")
            shape, fortran, dtype = read(file)
        except (ValueError, EOFError) as error:
            raise ValueError(
                f"{name} is no .npy file ({error}): save the array with numpy.save. Of a .npz, "
                "save each array by itself: its members cannot be read in pieces."
            ) from error
        header = _Npy(name, shape, dtype, fortran, file.tell())
    if dtype.hasobject:
        raise ValueError(
            f"{name} holds Python objects, which are read only as a whole, and by running what "
            "the file says: save numbers, or strings of a fixed length (astype('U'))."
        )
    if len(shape) not in (1, 2):
        raise ValueError(
            f"{name} has {len(shape)} dimensions, {shape}: rows are a table (n, features), and "
            "targets a column (n,). Reshape the array before it is saved."
        )
    size = header.offset + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if Path(name).stat().st_size < size:
        raise ValueError(
            f"{name} has {Path(name).stat().st_size:,} bytes, and its header promises {size:,}: it "
            "was cut off. Save it again."
        )
    if not shape[0]:
        raise ValueError(f"{name} has no rows.")
    return header


def _npy_rows(header: _Npy, start: int, stop: int) -> np.ndarray:
    """Read some rows of a file, and let it go."""
    name, shape, dtype, fortran, offset = header
    if fortran and len(shape) > 1:
        mapped = np.memmap(name, dtype, "r", offset, shape, "F")
        return np.array(mapped[start:stop], order="C")
    width = int(np.prod(shape[1:], dtype=np.int64))
    offset += start * width * dtype.itemsize
    values = np.fromfile(name, dtype, (stop - start) * width, offset=offset)
    return values.reshape(stop - start, *shape[1:])


def read_svmlight(
    paths: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    blocksize: int | str = _BLOCK,
    dtype: Any = np.float64,
    count: bool | None = None,
) -> tuple[da.Array, da.Array]:
    """Return X and y of svmlight (LIBSVM) files as Dask arrays with sparse blocks.

    A block is what lines begin in some bytes of a file. Unless ``n_features`` and ``zero_based``
    are given, one pass over the files finds them, and counts the rows; it is done here and now, by
    the workers. Without that pass the blocks have sizes that Dask does not know, which all
    estimators take. Query ids (``qid:``) are left out.

    Parameters
    ----------
    paths : str, Path or sequence of these
        A file, several, or a pattern with ``*``; a pattern's files are taken in order of name.
    n_features : int, optional
        Columns; by default the largest index there is.
    zero_based : bool or "auto", default="auto"
        Whether indices begin with 0. With "auto" they do if there is a 0 anywhere.
    blocksize : int or str, default="64 MB"
        Bytes of a file that make a block.
    dtype : numpy type, default=float64
        Of the entries of X.
    count : bool, optional
        Whether to make the pass, for the sizes of the blocks; by default where it must be made.

    Returns
    -------
    X, y : dask.array.Array
        CSR blocks, and the targets that belong to them, float64.

    Examples
    --------
    >>> import os, tempfile
    >>> from maxmargin.dask import read_svmlight
    >>> name = os.path.join(tempfile.mkdtemp(), "two.txt")
    >>> with open(name, "w") as file:
    ...     _ = file.write("1 1:0.5 3:2\\n-1 2:1\\n")
    >>> X, y = read_svmlight(name)
    >>> X.shape, y.compute().tolist(), X.compute().toarray().tolist()
    ((2, 3), [1.0, -1.0], [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]])
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based is True, False or 'auto', got {zero_based!r}.")
    names = _files(paths)
    step = int(parse_bytes(blocksize))
    if step < 1:
        raise ValueError(f"blocksize must be some bytes, as '64 MB', got {blocksize!r}.")
    parts = [
        (name, start, start + step)
        for name in names
        for start in range(0, Path(name).stat().st_size, step)
    ]
    sizes: list[float] = [np.nan] * len(parts)
    if count or n_features is None or zero_based == "auto":
        looks = dask.compute(*(dask.delayed(_look_at_lines)(*part) for part in parts))
        kept = [(part, look) for part, look in zip(parts, looks, strict=True) if look.n]
        if not kept:
            raise ValueError(f"{names[0]} has no rows: only comments or empty lines.")
        parts, sizes = [part for part, _ in kept], [look.n for _, look in kept]
        n_features, zero_based = _indices_of(names, looks, n_features, zero_based)
    assert n_features is not None
    token = tokenize(
        [(name, Path(name).stat().st_mtime_ns) for name in names],
        *(step, n_features, zero_based, np.dtype(dtype).str),
    )
    X, y = [], []
    for number, (part, n) in enumerate(zip(parts, sizes, strict=True)):
        both = dask.delayed(_svmlight_rows, nout=2)(
            *part,
            n_features,
            bool(zero_based),
            np.dtype(dtype),
            dask_key_name=f"read-svmlight-{token}-{number}",
        )
        meta = sp.csr_matrix((0, 0), dtype=dtype)
        X.append(da.from_delayed(both[0], shape=(n, n_features), meta=meta))
        y.append(da.from_delayed(both[1], shape=(n,), dtype=np.float64))
    return (
        da.concatenate(X, allow_unknown_chunksizes=True),
        da.concatenate(y, allow_unknown_chunksizes=True),
    )


class _Look(NamedTuple):
    """Rows of a piece, and the least and the largest index in it."""

    n: int
    least: int
    largest: int


def _indices_of(
    names: list[str], looks: Sequence[_Look], n_features: int | None, zero_based: bool | str
) -> tuple[int, bool]:
    """Say how many columns there are, and where indices begin, from what all pieces have."""
    with_indices = [look for look in looks if look.largest >= 0]
    if not with_indices and n_features is None:
        raise ValueError(
            f"{', '.join(names[:3])}: there are labels only, and no index:value beside them. Give "
            "n_features if all rows are meant to be zero."
        )
    least = min((look.least for look in with_indices), default=1)
    largest = max((look.largest for look in with_indices), default=0)
    begins = least == 0 if zero_based == "auto" else bool(zero_based)
    if not begins and least == 0:
        raise ValueError("zero_based=False, and an index is 0: give zero_based=True, or 'auto'.")
    width = largest + 1 if begins else largest
    if n_features is not None and width > n_features:
        raise ValueError(
            f"n_features={n_features}, and the largest index, {largest}, needs {width} columns: "
            "leave n_features out, or give the number of columns of all files."
        )
    return (width if n_features is None else n_features), begins


def _lines(name: str, start: int, stop: int) -> bytes:
    """Return the lines of a file that begin in a stretch of its bytes, whole."""
    with open(name, "rb") as file:
        if start:
            file.seek(start - 1)
            if file.read(1) != b"\n":
                file.readline()  # it begins in the stretch before
        begin = file.tell()
        if begin >= stop:
            return b""
        text = file.read(stop - begin)
        return text if text.endswith(b"\n") else text + file.readline()


def _look_at_lines(name: str, start: int, stop: int) -> _Look:
    """Count rows and see which indices there are."""
    text = _lines(name, start, stop)
    if not text.strip():
        return _Look(0, -1, -1)
    X, y = _parsed(name, text)
    if not X.nnz:
        return _Look(len(y), -1, -1)
    return _Look(len(y), int(X.indices.min()), int(X.indices.max()))


def _svmlight_rows(
    name: str, start: int, stop: int, n_features: int, zero_based: bool, dtype: Any
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Read a piece of a file."""
    text = _lines(name, start, stop)
    shift = 0 if zero_based else 1
    if not text.strip():
        return sp.csr_matrix((0, n_features), dtype=dtype), np.empty(0)
    X, y = _parsed(name, text)
    indices = X.indices - shift
    if X.nnz and (indices.min() < 0 or indices.max() >= n_features):
        raise ValueError(
            f"{name} has an index {int(X.indices.min())} or {int(X.indices.max())} that does not "
            f"fit n_features={n_features} and zero_based={zero_based}."
        )
    rows = sp.csr_matrix((X.data.astype(dtype), indices, X.indptr), shape=(len(y), n_features))
    return rows, y


def _parsed(name: str, text: bytes) -> tuple[sp.csr_matrix, np.ndarray]:
    try:
        return load_svmlight_file(io.BytesIO(text), zero_based=True)
    except ValueError as error:
        raise ValueError(
            f"{name} is no svmlight file: {error}. A line is a number, then index:value with "
            "indices that grow."
        ) from error


def _files(paths: Paths) -> list[str]:
    """Return the names of files; what is none, is empty or is compressed is refused."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    if not given:
        raise ValueError("There is no file to read: the list of names is empty.")
    names: list[str] = []
    for one in map(str, given):
        found = sorted(glob.glob(one)) if glob.has_magic(one) and not Path(one).exists() else [one]
        if not found:
            raise FileNotFoundError(f"No file matches {one!r}.")
        names += found
    for name in names:
        path = Path(name)
        if not path.exists():
            raise FileNotFoundError(
                f"There is no file {name!r}: names are those that all workers see, best absolute."
            )
        if path.is_dir():
            raise IsADirectoryError(
                f"{name!r} is a folder: give a file, or a pattern as {str(path / '*')!r}."
            )
        if path.suffix in _COMPRESSED:
            raise ValueError(
                f"{name} is compressed, and cannot be read in pieces: unpack it, or save it as "
                "Parquet or Zarr, which are compressed block by block."
            )
        if not path.stat().st_size:
            raise ValueError(f"{name} is empty: there are no rows in it.")
    return [str(Path(name).absolute()) for name in names]
