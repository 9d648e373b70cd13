"""Rows in files: read once per pass, by whoever needs them, within the budget."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from maxmargin import LogisticRegression

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
from maxmargin.dask import read_npy, read_svmlight  # noqa: E402
from maxmargin.dask.cluster import MEMORY  # noqa: E402
from maxmargin.dask.rows import Partitions  # noqa: E402


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def table(n=50, width=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, width)).round(3)
    return X, (X[:, 0] + 0.1 * random.normal(size=n) > 0).astype(np.int64)


# -- npy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "bool", "U3"])
def test_npy_of_any_order_and_type(tmp_path, order, dtype):
    X = np.asarray((10 * np.abs(table()[0])).astype(dtype), order=order)
    np.save(tmp_path / "X.npy", X)
    read = read_npy(tmp_path / "X.npy", rows=16)
    assert read.chunks == ((16, 16, 16, 2), (4,))
    assert read.dtype == X.dtype
    np.testing.assert_array_equal(read.compute(), X)
    np.testing.assert_array_equal(read[17:20].compute(), X[17:20])


def test_npy_files_one_after_the_other(tmp_path):
    X, y = table()
    for k, part in enumerate(np.split(np.arange(50), [20, 45])):
        np.save(tmp_path / f"X{k}.npy", X[part])
        np.save(tmp_path / f"y{k}.npy", y[part])
    dX, dy = (read_npy(tmp_path / f"{name}*.npy", rows=15) for name in "Xy")
    assert dX.chunks[0] == dy.chunks[0] == (15, 5, 15, 10, 5)
    np.testing.assert_array_equal(dX.compute(), X)
    np.testing.assert_array_equal(read_npy([tmp_path / "X0.npy", tmp_path / "X1.npy"]), X[:45])
    assert len(pickle.dumps(dict(dX.__dask_graph__()))) < 20_000  # names, and no rows
    model = LogisticRegression(tol=1e-10).fit(dX, dy)
    reference = LogisticRegression(tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-4)
    np.testing.assert_array_equal(model.predict(dX).compute(), reference.predict(X))


def test_npy_that_cannot_be_read(tmp_path):
    np.save(tmp_path / "cube.npy", np.zeros((2, 3, 4)))
    np.save(tmp_path / "wide.npy", np.zeros((2, 5)))
    np.save(tmp_path / "good.npy", np.zeros((2, 3)))
    np.save(tmp_path / "none.npy", np.zeros((0, 3)))
    np.save(tmp_path / "objects.npy", np.array([[None]]), allow_pickle=True)
    (tmp_path / "empty.npy").touch()
    (tmp_path / "text.npy").write_text("1,2,3")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "wide.npy").read_bytes()[:-8])
    for name, error, said in (
        ("cube", ValueError, "has 3 dimensions"),
        ("none", ValueError, "has no rows"),
        ("objects", ValueError, "holds Python objects"),
        ("empty", ValueError, "is empty"),
        ("text", ValueError, "is no .npy file"),
        ("cut", ValueError, "was cut off"),
        ("missing", FileNotFoundError, "There is no file"),
        ("nothing*", FileNotFoundError, "No file matches"),
    ):
        with pytest.raises(error, match=said):
            read_npy(tmp_path / f"{name}.npy")
    with pytest.raises(ValueError, match=r"wide.npy has rows of shape \(5,\)"):
        read_npy([tmp_path / "good.npy", tmp_path / "wide.npy"])
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_npy(tmp_path)
    with pytest.raises(ValueError, match="is empty"):
        read_npy([])


# -- svmlight ------------------------------------------------------------------------------------


def svmlight_text(zero_based):
    random = np.random.default_rng(0)
    dense = sp.random(40, 12, density=0.3, random_state=0).toarray()
    dense[0, 0] = 1.0
    X = sp.csr_matrix(dense)
    lines = ["# made up"]
    for row in range(40):
        entries = [f"{j + (not zero_based)}:{X[row, j]:.6g}" for j in sorted(X[row].indices)]
        query = f"qid:{row // 10} " if row % 3 else ""
        comment = "  # a row" if row % 5 == 0 else ""
        lines.append(f"{random.integers(-1, 2)} {query}{' '.join(entries)}{comment}")
        if row % 7 == 0:
            lines.append("")
    return "\n".join(lines)  # without an end to the last line


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("blocksize", [6, 37, "1 MB"])
def test_svmlight_in_pieces(tmp_path, zero_based, blocksize):
    name = tmp_path / "rows.txt"
    name.write_text(svmlight_text(zero_based))
    X, y = load_svmlight_file(str(name), zero_based=zero_based)
    dX, dy = read_svmlight(name, blocksize=blocksize)
    assert dX.shape == X.shape
    assert dX.chunks[0] == dy.chunks[0]
    assert sp.issparse(dX._meta)
    np.testing.assert_array_equal(dX.compute().toarray(), X.toarray())
    np.testing.assert_array_equal(dy.compute(), y)
    options = {"n_features": X.shape[1], "zero_based": zero_based, "blocksize": blocksize}
    dX, dy = read_svmlight(name, dtype="float32", **options)
    assert np.isnan(dX.shape[0])  # no pass was made
    assert dX.dtype == np.float32
    assert abs(dX.compute() - X).max() < 1e-6
    assert len(read_svmlight(name, count=True, **options)[1]) == 40


def test_svmlight_files_of_different_widths(tmp_path):
    X, y = table(60, 6)
    X[:30, 3:] = 0
    for k, part in enumerate(np.split(np.arange(60), 2)):
        dump_svmlight_file(X[part], y[part], str(tmp_path / f"part{k}"), zero_based=False)
    dX, dy = read_svmlight(tmp_path / "part*", blocksize=500)
    assert dX.shape == (60, 6)
    np.testing.assert_allclose(dX.compute().toarray(), X)
    model, reference = (
        LogisticRegression(tol=1e-10).fit(dX, dy),
        LogisticRegression(tol=1e-10).fit(X, y),
    )
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=0.01)
    np.testing.assert_array_equal(model.predict(dX).compute(), reference.predict(X))


def test_svmlight_that_cannot_be_read(tmp_path):
    for name, text, error, said in (
        ("labels", "1\n-1\n", ValueError, "labels only"),
        ("empty", "", ValueError, "is empty"),
        ("comments", "# nothing\n\n", ValueError, "has no rows"),
        ("csv", "a,b\n1,2\n", ValueError, "is no svmlight file"),
        ("rows.gz", "1 1:2\n", ValueError, "is compressed"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(error, match=said):
            read_svmlight(tmp_path / name)
    (tmp_path / "good").write_text("1 3:2\n")
    with pytest.raises(ValueError, match="needs 3 columns"):
        read_svmlight(tmp_path / "good", n_features=2)
    X, _ = read_svmlight(tmp_path / "good", n_features=2, zero_based=False)
    with pytest.raises(ValueError, match="does not fit n_features=2"):
        X.compute()
    (tmp_path / "zero").write_text("1 0:2\n")
    with pytest.raises(ValueError, match="an index is 0"):
        read_svmlight(tmp_path / "zero", zero_based=False)
    X, _ = read_svmlight(tmp_path / "labels", n_features=3)
    assert X.compute().shape == (2, 3)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_svmlight(tmp_path / "missing")
    with pytest.raises(ValueError, match="zero_based is True"):
        read_svmlight(tmp_path / "good", zero_based="no")


# -- passes --------------------------------------------------------------------------------------


def counted(X, log):
    """Return X whose blocks write a line when they are made."""

    def note(block, block_info=None):
        with open(log, "a") as file:
            file.write(f"{block_info[0]['chunk-location'][0]}\n")
        return block

    return X.map_blocks(note, dtype=X.dtype, meta=X._meta)


def reads(log):
    lines = Path(log).read_text().split() if Path(log).exists() else []
    Path(log).write_text("")
    return np.bincount(np.array(lines, dtype=int), minlength=10).tolist()


def total(block):
    return block.X.sum(axis=0)


def both(parts):
    return np.sum(parts, axis=0)


def test_every_pass_reads_what_is_not_kept_once(tmp_path):
    X, y = table(n=100)
    np.save(tmp_path / "X.npy", X)
    log = tmp_path / "log"
    block = 10 * 4 * 8 + 10 * 8  # bytes of ten rows, and of their weights
    for budget, kept in ((10, 0), (6 * block, 2), (10**6, 10)):
        dX = counted(read_npy(tmp_path / "X.npy", rows=10), log)
        with dask.config.set({MEMORY: budget}), pytest.MonkeyPatch.context() as patch:
            patch.setattr("dask.system.CPU_COUNT", 1)
            rows = Partitions.of(LogisticRegression(), dX, da.from_array(y, chunks=10))
            reads(log)
            for _ in range(2):
                sums = rows.reduced(total, combine=both)
                np.testing.assert_allclose(sums, X.sum(axis=0))
                assert reads(log) == [0] * kept + [1] * (10 - kept)
            assert rows.cluster.distribution.kept == (kept == 10)
            said = str(rows.cluster.distribution)
            assert ("2 of 10 partitions were kept" in said) == (kept == 2)


def test_frames_of_unknown_size_are_kept_where_they_fit(tmp_path):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y = table()
    frame = dd.from_pandas(pd.DataFrame(X).rename(columns=str), npartitions=5)
    target = dd.from_pandas(pd.Series(y), npartitions=5)
    for budget, kept in (("1 kB", False), ("1 MB", True)):
        with dask.config.set({MEMORY: budget}):
            rows = Partitions.of(LogisticRegression(), frame, target)
        assert rows.cluster.distribution.kept == kept


def test_small_integers_are_counted_as_the_numbers_they_become(tmp_path):
    X = da.from_array(np.arange(400, dtype=np.uint8).reshape(100, 4), chunks=(20, 4))
    with dask.config.set({MEMORY: "1 kB"}):
        rows = Partitions.of(LogisticRegression(), X, da.from_array(np.arange(100) % 2, chunks=20))
    assert not rows.cluster.distribution.kept


_PEAK = """
import resource, sys
import dask, numpy as np
from maxmargin import LogisticRegression
from maxmargin.dask import read_npy
from maxmargin.dask.rows import Partitions

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def columns(block):
    return block.X.sum(axis=0)

X = read_npy(sys.argv[1], blocksize="4 MB")
y = read_npy(sys.argv[2], rows=X.chunks[0][0])
options = {"maxmargin.memory-per-worker": "60 MB", "scheduler": "threads", "num_workers": 2}
with dask.config.set(options):
    Partitions.of(LogisticRegression(), X[:100], y[:100]).reduced(columns, combine=sum)
    before = peak()
    rows = Partitions.of(LogisticRegression(), X, y)
    for _ in range(2):
        rows.reduced(columns, combine=sum)
print(peak() - before, X.nbytes, rows.cluster.distribution.kept)
"""


@pytest.mark.slow
def test_memory_stays_within_the_budget(tmp_path):
    """200 MB of rows, a budget of 60 MB: two passes take no more than that."""
    n = 1_250_000
    for name, shape in (("X", (n, 20)), ("y", (n,))):  # holes in the files: nothing is written
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", np.float64, shape).flush()
    files = [str(tmp_path / "X.npy"), str(tmp_path / "y.npy")]
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, *files], capture_output=True, text=True, check=True
    )
    grown, nbytes, kept = done.stdout.split()
    assert int(nbytes) == 200e6
    assert kept == "False"
    assert int(grown) < 60e6, grown


# -- Dask's own readers --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's, with pandas 3.1
def test_parquet(tmp_path):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    pq = pytest.importorskip("pyarrow.parquet")
    X, y = table(120)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=np.array(["no", "yes"])[y])
    frame["unneeded"] = np.random.default_rng(0).normal(size=120)
    dd.from_pandas(frame, npartitions=4).to_parquet(tmp_path / "rows")
    for name in sorted((tmp_path / "rows").glob("*.parquet")):  # who reads this column, fails
        metadata = pq.ParquetFile(name).metadata.row_group(0)
        columns = {metadata.column(k).path_in_schema: metadata.column(k) for k in range(6)}
        chunk = columns["unneeded"]
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        content = bytearray(name.read_bytes())
        content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
        name.write_bytes(content)
    stored = dd.read_parquet(tmp_path / "rows")
    with pytest.raises(OSError, match=r"read|Parquet|page|thrift"):
        stored.compute()
    dX, dy = stored[list("abcd")], stored["label"]
    model = LogisticRegression(tol=1e-10).fit(dX, dy)
    reference = LogisticRegression(tol=1e-10).fit(frame[list("abcd")], frame["label"])
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-4)
    assert model.score(dX, dy) == reference.score(frame[list("abcd")], frame["label"])
    predicted = model.predict(dX)  # lazy: written back partition by partition
    predicted.to_frame(name="predicted").to_parquet(tmp_path / "answers")
    written = pd.read_parquet(tmp_path / "answers")["predicted"]
    assert list(written) == list(reference.predict(frame[list("abcd")]))


def test_zarr(tmp_path):
    pytest.importorskip("zarr")
    X, y = table(100)
    da.from_array(X, chunks=(25, 4)).to_zarr(str(tmp_path / "X.zarr"))
    da.from_array(y, chunks=25).to_zarr(str(tmp_path / "y.zarr"))
    dX, dy = (da.from_zarr(str(tmp_path / f"{name}.zarr")) for name in "Xy")
    model, reference = (
        LogisticRegression(tol=1e-10).fit(dX, dy),
        LogisticRegression(tol=1e-10).fit(X, y),
    )
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-4)
    model.decision_function(dX).to_zarr(str(tmp_path / "values.zarr"))
    written = da.from_zarr(str(tmp_path / "values.zarr")).compute()
    np.testing.assert_allclose(written, reference.decision_function(X), rtol=1e-3, atol=1e-3)


def test_blocks_of_no_rows_and_records_with_names_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((3, 2)))
    with pytest.raises(ValueError, match="rows must be 1 at least"):
        read_npy(tmp_path / "X.npy", rows=0)
    with pytest.warns(UserWarning, match="format 3.0"):
        np.save(tmp_path / "records.npy", np.zeros(3, dtype=[("\u03b1", float)]))
    with pytest.raises(ValueError, match=r"records.npy is no .npy file \(its version is \(3, 0\)"):
        read_npy(tmp_path / "records.npy")
