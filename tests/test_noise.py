"""The noise that ``pytest --noise`` makes reaches the package's products."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CODE = """
import sys
import numpy as np

if sys.argv[1] != "none":
    import noise
    noise.install(int(sys.argv[1]))
from maxmargin.backends.dense.products import add_product
from maxmargin.kernels import RBF, Linear

random = np.random.default_rng(0)
X = random.normal(size=(30, 4))
K = RBF(0.1)(X)
assert (K == K.T).all()
assert (Linear()(np.round(X)) == np.round(X) @ np.round(X).T).all()
C = np.zeros((4, 4))
add_product(C, X.T, X)
print(*np.concatenate([K.ravel(), Linear()(X).ravel(), C.ravel()]).tolist())
"""


def printed(seed):
    done = subprocess.run(
        [sys.executable, "-c", CODE, seed],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return np.array(done.stdout.split(), dtype=float)


@pytest.mark.slow
def test_noise_changes_the_last_bits_of_products_and_no_more():
    plain, first, again, second = map(printed, ("none", "1", "1", "2"))
    np.testing.assert_array_equal(first, again)
    for noisy in (first, second):
        np.testing.assert_allclose(noisy, plain, rtol=1e-13)
        for part in np.split(np.arange(len(plain)), [900, 1800]):
            assert (noisy[part] != plain[part]).mean() > 0.2
    assert (first != second).any()
