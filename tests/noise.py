"""Noise in the last bits of products, as another BLAS or another CPU would make it.

``pytest --noise SEED`` multiplies every entry of a product that the package computes, with NumPy or
in compiled code, by ``1 + u eps`` with ``|u| <= ULPS``. u depends on the entry and on the seed
only, so that a run can be repeated and symmetric matrices stay so. A test or an algorithm that
hangs on the last bit fails here, on any computer. Values whose last bits are all zero stay: whole
numbers, and multiples of a power of two, are exact with every BLAS.

The modules of the package are rewritten when they are imported: ``A @ B`` becomes
``noisy(A @ B)``, and so do calls of NumPy's and BLAS's products.
"""

from __future__ import annotations

import ast
import atexit
import os
import shutil
import sys
import tempfile
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader

import numpy as np
import scipy.sparse as sp

ULPS = 4.0
_PRODUCTS = {"dot", "einsum", "inner", "matmul", "tensordot", "vdot"}  # of np
_ROUTINES = {"dsyrk"}
_IN_PLACE = {"gemm"}  # writes its C, in backends/dense/products.py
_MIX = 0x9E3779B97F4A7C15
_FOLDER = "MAXMARGIN_NOISE_FOLDER"
_seed = 0


def noisy(value):
    """Return a product with noise in its last bits; arrays are changed in place."""
    if sp.issparse(value):
        noisy(value.data)
    elif isinstance(value, np.ndarray) and value.dtype in (np.float32, np.float64):
        # in float64 for both: the bits of a float32 entry, too, say which u it gets
        bits = value.astype(np.float64).view(np.uint64) ^ np.uint64(_seed * 2654435761)
        mixed = bits * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(32)
        u = (mixed & np.uint64(0xFFFF)).astype(np.float64) / 0x7FFF - 1.0
        u[value.astype(np.float64).view(np.uint64) & _zeros(value.dtype) == 0] = 0.0
        value *= (1.0 + ULPS * np.finfo(value.dtype).eps * u).astype(value.dtype)
    elif isinstance(value, np.floating):
        return type(value)(noisy(np.array([value]))[0])
    return value


def _zeros(dtype: np.dtype) -> np.uint64:
    """Mask of the bits that are zero in what is taken for exact: 20 of 52, or 11 of 23."""
    return np.uint64((1 << 20) - 1 if dtype == np.float64 else (1 << 40) - 1)


def _teach_numba() -> None:
    from numba import types
    from numba.extending import overload

    seed = np.uint64(_seed * 2654435761)

    @overload(noisy)
    def _(value):
        if isinstance(value, types.Array) and isinstance(value.dtype, types.Float):
            eps = ULPS * float(np.finfo(str(value.dtype)).eps)
            zeros = _zeros(np.dtype(str(value.dtype)))

            def of_array(value):
                for index in np.ndindex(value.shape):
                    bits = np.float64(value[index]).view(np.uint64) ^ seed
                    mixed = bits * np.uint64(_MIX)
                    mixed ^= mixed >> np.uint64(32)
                    u = np.float64(mixed & np.uint64(0xFFFF)) / 0x7FFF - 1.0
                    if (bits ^ seed) & zeros:
                        value[index] *= 1.0 + eps * u
                return value

            return of_array
        if isinstance(value, types.Float):
            eps = ULPS * float(np.finfo(str(value)).eps)
            zeros = _zeros(np.dtype(str(value)))

            def of_number(value):
                bits = np.float64(value).view(np.uint64)
                mixed = (bits ^ seed) * np.uint64(_MIX)
                mixed ^= mixed >> np.uint64(32)
                u = np.float64(mixed & np.uint64(0xFFFF)) / 0x7FFF - 1.0
                return value * (1.0 + eps * u) if bits & zeros else value

            return of_number
        return lambda value: value


class _Rewriter(ast.NodeTransformer):
    def _wrapped(self, node: ast.expr) -> ast.Call:
        return ast.Call(ast.Name("noisy", ast.Load()), [node], [])

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return self._wrapped(node) if isinstance(node.op, ast.MatMult) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        f = node.func
        of_numpy = isinstance(f, ast.Attribute) and getattr(f.value, "id", "") == "np"
        if (of_numpy and f.attr in _PRODUCTS) or getattr(f, "id", "") in _ROUTINES:
            return self._wrapped(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | list[ast.Expr]:
        self.generic_visit(node)
        called = getattr(getattr(node.value, "func", None), "id", "")
        if called in _IN_PLACE:
            return [node, ast.Expr(self._wrapped(ast.Name("C", ast.Load())))]
        return node


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str):
        """Compile the rewritten source; what Python has cached is the plain one."""
        path = self.get_filename(fullname)
        tree = _Rewriter().visit(ast.parse(self.get_data(path)))
        after = next((k for k, node in enumerate(tree.body) if isinstance(node, ast.ImportFrom)), 0)
        future = getattr(tree.body[after], "module", "") == "__future__" if tree.body else False
        tree.body.insert(after + future, ast.parse("from noise import noisy").body[0])
        return compile(ast.fix_missing_locations(tree), path, "exec")


class _Finder(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if not name.startswith("maxmargin.") or name.startswith("maxmargin.backends.cuda"):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install(seed: int) -> None:
    """Rewrite the package's modules as they are imported from now on."""
    global _seed
    if "maxmargin" in sys.modules:
        raise RuntimeError("maxmargin is already imported: noise has to come first.")
    _seed = seed
    if _FOLDER not in os.environ:  # in the first process; workers inherit it
        os.environ[_FOLDER] = tempfile.mkdtemp(prefix=f"maxmargin-noise-{seed}-")
        atexit.register(shutil.rmtree, os.environ[_FOLDER], ignore_errors=True)
    # compiled code has the seed in it, and the stamp of the plain source
    os.environ["NUMBA_CACHE_DIR"] = os.environ[_FOLDER]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    _teach_numba()
    sys.meta_path.insert(0, _Finder())
