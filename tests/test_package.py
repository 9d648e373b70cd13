"""The package itself: what importing costs, which way layers import, what is promised."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import maxmargin
from maxmargin.aliases import PATHS, _scikit_learn

ROOT = Path(maxmargin.__file__).parent
LAYERS = [
    {"aliases"},
    {"backends", "memory"},
    {"kernels", "losses", "solution"},
    {"gram"},
    {"certificate"},
    {"risk"},
    {"duals"},
    {"evaluation", "progress"},
    {"trace"},
    {"solvers"},
    {"estimators"},
    {"feature_maps", "multiclass"},
    {"bounds"},
    {"linear"},
    {"kernel_methods", "svm"},
    {"ensemble"},
    {"plotting"},
    {"selection"},
    {"dask", "testing"},
    {*PATHS} - {"ensemble", "multiclass", "svm"},
    {"cli"},
    {"__main__"},
]


def layer(module):
    return next(i for i, names in enumerate(LAYERS) if module in names)


def imports(path):
    """Yield the modules of this package that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("maxmargin"):
            parts = node.module.split(".")
            names = [alias.name for alias in node.names if alias.name != "__version__"]
            homes = [maxmargin._HOME.get(name, f"maxmargin.{name}").split(".")[1] for name in names]
            yield from [parts[1]] if len(parts) > 1 else homes


def test_layers_import_one_way():
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).parts
        if parts == ("__init__.py",):
            continue
        module = parts[0].removesuffix(".py")
        for imported in imports(path):
            assert imported == module or layer(imported) < layer(module), (path, imported)


def test_lapack_s_routines_are_those_of_the_lowest_scipy():
    """Found only where SciPy 1.13 is installed (.ci/lowest), and nothing can be imported then."""
    since = {"gbcon", "gtcon", "hetri", "hetrs", "langb", "lantr", "stevd", "sytri", "sytrs"}
    since |= {"trcon"}  # without the letter of a type
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "scipy.linalg.lapack":
                assert not since & {alias.name[1:] for alias in node.names}, path


def test_import_is_light():
    code = """
import json, sys, time, numpy
start = time.perf_counter()
import maxmargin
seconds = time.perf_counter() - start
heavy = {"numba", "torch", "matplotlib", "sklearn", "scipy"} & set(sys.modules)
print(json.dumps([seconds, sorted(heavy)]))
"""
    runs = [
        json.loads(
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        )
        for _ in range(3)
    ]
    assert all(heavy == [] for _, heavy in runs)
    assert min(seconds for seconds, _ in runs) < 0.3


def test_fitting_loads_neither_torch_nor_matplotlib():
    code = """
import sys
from maxmargin import SVC
SVC().fit([[0.0], [1.0]], [0, 1])
assert not {"torch", "matplotlib", "dask"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_nothing_need_be_writable():
    """Numba finds no folder for its cache: all is compiled, even where warnings are errors."""
    code = """
import tempfile

def refuse(*args, **options):
    raise PermissionError("a read-only file system")

tempfile.TemporaryFile = refuse  # how Numba finds out
import maxmargin.linear, maxmargin.selection, maxmargin.svm

model = maxmargin.Perceptron().fit([[0.0], [1.0]], [0, 1])
assert model.predict([[2.0]]) == [1]
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr.count(b"NUMBA_CACHE_DIR") == 1


@pytest.mark.slow
def test_what_another_version_has_compiled_is_no_obstacle(tmp_path):
    """The files of an upgrade's predecessor name types that are no longer there."""
    source = """
from typing import NamedTuple
from maxmargin.backends.compiled import njit

class {name}(NamedTuple):
    value: float

@njit(cache=True)
def taken(pair):
    return {factor} * pair.value

assert taken({name}(3.0)) == {factor} * 3.0
"""
    for name, factor in (("Before", 1.0), ("Afterwards", 20.0)):
        (tmp_path / "versions.py").write_text(source.format(name=name, factor=factor))
        subprocess.run([sys.executable, "-c", "import versions"], cwd=tmp_path, check=True)


@pytest.mark.slow
def test_what_other_files_had_in_them_is_compiled_anew(tmp_path):
    """Machine code holds functions and numbers of the files that its own imports."""
    begin = "from maxmargin.backends.compiled import INNER, njit\n"
    (tmp_path / "far.py").write_text("NUMBER = 1.0\n")
    near = begin + "from far import NUMBER\n\n@njit(**INNER)\ndef times(x):\n    return {} * x\n"
    caller = begin + "from near import NUMBER, times\n\n@njit(cache=True)\ndef of(x):\n"
    (tmp_path / "caller.py").write_text(caller + "    return times(x) + NUMBER\n")

    def answer():
        code = "import caller; print(caller.of(3.0), sum(caller.of.stats.cache_hits.values()))"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
        return done.stdout.decode().split()

    (tmp_path / "near.py").write_text(near.format("2.0"))
    assert [answer(), answer()] == [["7.0", "0"], ["7.0", "1"]]
    (tmp_path / "near.py").write_text(near.format("20.0"))
    assert answer() == ["61.0", "0"]
    (tmp_path / "far.py").write_text("NUMBER = 5.0\n")
    assert [answer(), answer()] == [["65.0", "0"], ["65.0", "1"]]


def test_public_names():
    assert set(maxmargin.__all__) <= set(dir(maxmargin))
    for name in maxmargin.__all__:
        assert getattr(maxmargin, name) is not None
    assert (ROOT / "py.typed").exists()
    with pytest.raises(AttributeError, match="nothing"):
        _ = maxmargin.nothing


@pytest.mark.parametrize("path", PATHS)
def test_scikit_learn_import_paths(path):
    """Every estimator that has the name of one of scikit-learn's is found at its path there."""
    ours = import_module(f"maxmargin.{path}")
    theirs = _scikit_learn(path)
    shared = [name for name in maxmargin.__all__ if isinstance(getattr(theirs, name, None), type)]
    assert sorted(n for n in PATHS[path] if isinstance(getattr(ours, n), type)) == sorted(shared)
    for name in shared:
        assert getattr(ours, name) is getattr(maxmargin, name)
        assert name in dir(ours)
    assert set(shared) <= set(ours.__all__)
    missing = next(name for name in dir(theirs) if name[0] != "_" and name not in ours.__all__)
    with pytest.raises(ImportError, match=f"no {missing}: import it from sklearn.{path}"):
        exec(f"from maxmargin.{path} import {missing}")
    with pytest.raises(AttributeError, match="nothing"):
        _ = ours.nothing


def test_kernels_are_imported_as_from_scikit_learn():
    code = "from maxmargin.gaussian_process import kernels; print(kernels.RBF(2.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["RBF(length_scale=2)"], done.stderr
    theirs = import_module("sklearn.gaussian_process.kernels")
    public = {
        name
        for name, kind in vars(theirs).items()
        if isinstance(kind, type) and kind.__module__ == theirs.__name__
    }
    assert public <= vars(import_module("maxmargin.gaussian_process.kernels")).keys()


def test_modules_that_are_scikit_learns_alone():
    with pytest.raises(ImportError, match="no preprocessing: import it from sklearn"):
        from maxmargin import preprocessing  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match=r"no metrics: import sklearn\.metrics"):
        import maxmargin.metrics.pairwise
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'maxmargin\.nothing'"):
        import maxmargin.nothing  # noqa: F401
