"""Kernel principal component analysis: directions of largest variance in feature space."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.backends.threads import Workers, on_one_blas_thread, thread_count
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.kernel import KernelEstimator, PairwiseKernels, fall_back_to_cpu
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.estimators.warn import warn
from maxmargin.kernel_methods.kernel_ridge import KernelRidge
from maxmargin.kernel_methods.preimages import fixed_points
from maxmargin.kernels import RBF, Kernel, Scaled
from maxmargin.kernels.base import Input
from maxmargin.progress import ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers import BlockLanczos, DenseEigen, Method, Watch
from maxmargin.solvers.spectral.problem import SpectralProblem, SpectralSolution

_EXACT = 1e-10  # what tol=0 stands for: about what float64 has of a Gram matrix
_NEGATIVE, _ZERO = 1e-5, 1e-12  # of the largest eigenvalue: indefinite below, nothing up to it
_DENSE_ROWS, _DENSE_SHARE = 500, 20  # rows, and rows over components, up to which LAPACK is quicker


class KernelPCA(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, PairwiseKernels, KernelEstimator
):
    """Kernel PCA: the principal components of the data in the feature space of a kernel.

    With ``phi`` centred on the training rows, the component j is ``u_j = sum_i a_ij phi(x_i)``,
    ``a_j = v_j / sqrt(lambda_j)`` for an eigenvector of the centred Gram matrix, and

        transform(x)_j = u_j . phi(x) = sum_i a_ij k(x, x_i) - offset_j

    With the linear kernel it is PCA.

    Parameters
    ----------
    n_components : int, optional
        Components, no more than rows; by default all of nonzero variance. Those beyond the rank
        are zero, as in scikit-learn, unless ``remove_zero_eig=True``.
    kernel : Kernel, name or callable
        By default ``"linear"``. A kernel object of :mod:`maxmargin.kernels`, also on strings, or of
        scikit-learn's; ``"precomputed"`` or a name of ``pairwise_kernels``; or a function of two
        rows, as in scikit-learn.
    gamma : float, {"scale", "auto"} or None, default=None
        Of the named kernels. None is ``1 / n_features``, as in scikit-learn.
    degree : float, default=3
    coef0 : float, default=1
        Of the named kernels; refused beside a kernel object.
    kernel_params : dict, optional
        Keyword arguments of a function of two rows.
    alpha : float, default=1.0
        Of the ridge regression that learns pre-images.
    fit_inverse_transform : bool or {"ridge", "fixed_point"}, default=False
        Whether and how :meth:`inverse_transform` finds points for given components: ``"ridge"``, or
        True, learns them by kernel ridge regression, as scikit-learn does; ``"fixed_point"``, for
        the RBF kernel, iterates towards the point whose image is nearest (Mika et al.).
    eigen_solver : {"auto", "dense", "lanczos", "arpack", "randomized"} or Method, default="auto"
        ``"dense"`` has LAPACK find eigenvectors of the whole matrix. ``"lanczos"``, a block method,
        needs some passes over the Gram matrix and none of it in memory; ``"arpack"``,
        scikit-learn's name, is the same. ``"randomized"`` is it with a random start and a
        given number of passes. ``"auto"`` is dense up to 500 rows, and where more components than
        a twentieth of the rows are wanted. ``certificate_`` says which.
    tol : float, default=0
        Residual, over the largest eigenvalue, of components that count as converged; 0 is 1e-10.
        Rounding may be so large, too, or 1e-7.
    max_iter : int, optional
        Passes of ``"lanczos"`` at most; by default as many as it takes.
    iterated_power : int or "auto", default="auto"
        Passes of ``"randomized"`` after the first; ``"auto"`` is 7 for few components, else 4.
    remove_zero_eig : bool, default=False
        Leave out components without variance. So it is in any case where ``n_components=None``.
    random_state : int, RandomState or None, default=None
        Of the start of ``"lanczos"`` and ``"randomized"``.
    copy_X : bool, default=True
        Whether ``X_fit_`` is a copy of the training rows. Without one, do not change them.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    cache_size : "auto" or float, default="auto"
        Memory for the Gram matrix and its eigenvectors in MB, or a quarter of what is free. Without
        room for the matrix, each pass computes it anew.
    device : str, default="cpu"
        ``"cuda"`` to have the products with the Gram matrix, and :meth:`transform`, on a GPU.
    verbose : bool or int, default=False
        Show a progress bar (by tqdm if it is installed).
    time_limit : float, optional
        Seconds after which ``"lanczos"`` stops where it is. LAPACK cannot be stopped, and is
        refused beyond 500 rows.
    callback : callable, optional
        Called with a :class:`maxmargin.progress.Progress` some times a second; stops the fit by
        returning True.
    trace : bool or Trace, default=False
        Record every step in ``trace_``, in bounded memory (:class:`~maxmargin.Trace`).

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Of the centred Gram matrix, largest first: n times the variances.
    eigenvectors_ : array of shape (n_samples, n_components)
    certificate_ : SpectralCertificate
        Residuals recomputed from the Gram matrix, and what they bound.
    dual_coef_, X_transformed_fit_ : arrays
        With ``"ridge"``, its coefficients, and the components of the training rows.
    n_iter_ : int
        Passes over the Gram matrix.
    gamma_ : float
        Gamma of the kernel as a number, or what None stands for.
    X_fit_ : array or CSR
        The training rows (empty for a precomputed kernel).
    kernel_, device_, support_vectors_
        The kernel with all its parameters as numbers, where the fit ran, and the training points.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from maxmargin import KernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> pca = KernelPCA(n_components=7, kernel="rbf", gamma=0.001).fit(X)
    >>> pca.transform(X).shape
    (1797, 7)
    >>> bool(pca.certificate_.residual < 1e-10)
    True
    """

    eigenvalues_: np.ndarray
    eigenvectors_: np.ndarray

    _parameter_constraints: dict = {
        **KernelEstimator._parameter_constraints,
        **PairwiseKernels._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "fit_inverse_transform": ["boolean", StrOptions({"ridge", "fixed_point"})],
        "eigen_solver": [
            StrOptions({"auto", "dense", "lanczos", "arpack", "randomized"}),
            Method,
        ],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "remove_zero_eig": ["boolean"],
        "random_state": ["random_state"],
        "copy_X": ["boolean"],
        **WATCHED,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool | str = False,
        eigen_solver: Any = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        cache_size: float | str = "auto",
        device: str = "cpu",
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.cache_size = cache_size
        self.device = device
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse &= not self.fit_inverse_transform
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # -- fitting -------------------------------------------------------------------------------

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    @fall_back_to_cpu
    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Find the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training points; for a precomputed kernel the square matrix of its values.
        y : ignored

        Returns
        -------
        self : KernelPCA
        """
        kernel = self._validated_kernel()
        self._refuse_preimages(X, kernel)
        X, _ = self._validated(X, np.ones(_num_samples(X)), kernel)
        single = getattr(X, "dtype", None) == np.float32
        self._dtype = np.float32 if single else np.float64  # of components, as X is
        gram = self._gram(X, kernel)
        count = gram.n if self.n_components is None else min(self.n_components, gram.n)
        problem = SpectralProblem(gram, count)
        with self._watched() as monitor:
            threads = Workers(1 if gram.program.calls_python else thread_count(self.n_jobs))
            seed = int(check_random_state(self.random_state).randint(1 << 31))
            limit = -1 if self.max_iter is None else self.max_iter
            watch = Watch(self.tol or _EXACT, limit, ProblemMonitor(monitor), threads, seed=seed)
            found = self._method(problem).solve(problem, watch)
            if self.verbose:
                judged = found.certificate
                monitor.end(f"{judged.status}: {judged.claim}", judged.converged)
        if self.copy_X or kernel.pairwise:
            self._keep_support_vectors(X, np.arange(gram.n))
        else:
            self.support_, self.support_vectors_ = np.arange(gram.n, dtype=np.int32), X
        self.X_fit_ = self.support_vectors_
        width = getattr(self, "n_features_in_", None)  # strings have none
        self.gamma_ = getattr(self.kernel_, "gamma", None if width is None else 1.0 / width)
        self._keep(found)
        self._warn_unfinished(found)
        if self.fit_inverse_transform:
            self._fit_inverse(X)
        return self

    def _method(self, problem: SpectralProblem) -> Method:
        """Method that was asked for, or that suits the problem."""
        name, n, count = self.eigen_solver, problem.n, problem.count
        if isinstance(name, Method):
            return name
        if name == "auto":
            many = n <= _DENSE_ROWS or _DENSE_SHARE * count > n
            name = "lanczos" if count < n and (not many or self._in_parts(problem)) else "dense"
        if name == "dense" and self.time_limit is not None and n > _DENSE_ROWS:
            raise ValueError(
                f"Eigenvectors of {n} rows by LAPACK are nothing that time_limit can stop: leave "
                "it out, or give n_components and eigen_solver='lanczos'."
            )
        if name == "dense":
            return DenseEigen()
        passes = None
        if name == "randomized":
            few = 7 if count < 0.1 * n else 4
            passes = 1 + (few if isinstance(self.iterated_power, str) else self.iterated_power)
        return BlockLanczos(passes)

    def _in_parts(self, problem: SpectralProblem) -> bool:
        """Whether LAPACK, which works on the whole matrix and cannot be stopped, is not wanted."""
        large = problem.n > _DENSE_ROWS
        stoppable = large and (self.time_limit is not None or problem.gram.on_device)
        return stoppable or DenseEigen().accepts(problem) is not None

    def _keep(self, found: SpectralSolution) -> None:
        """Set eigenvalues, eigenvectors and the expansion of the components."""
        values, vectors = found.values.copy(), found.vectors
        largest = float(np.abs(values).max(initial=0.0))
        if (values < -max(_NEGATIVE, found.certificate.rounding) * largest).any():
            raise ValueError(
                "There are significant negative eigenvalues. The kernel "
                f"{self.kernel_!r} is indefinite on these data: its centred Gram matrix has an "
                f"eigenvalue of {values.min():.3g} beside {largest:.3g}, and there is no "
                f"variance like that. Ask for fewer components, no more than the "
                f"{int((values > _ZERO * largest).sum())} of positive variance, or use a valid "
                "kernel: check_valid(kernel, X) says which eigenvalues there are."
            )
        values[values <= _ZERO * largest] = 0.0
        vectors = svd_flip(vectors, None)[0]
        if self.remove_zero_eig or self.n_components is None:
            values, vectors = values[values > 0], vectors[:, values > 0]
        self.eigenvalues_, self.eigenvectors_ = values, vectors  # those of the certificate
        self.certificate_, self.n_iter_ = found.certificate, found.n_iter
        a = np.divide(vectors, np.sqrt(values), out=np.zeros_like(vectors), where=values > 0)
        a -= a.mean(axis=0)
        self._expansion, self._offset = np.ascontiguousarray(a.T), found.means @ a

    def _warn_unfinished(self, found: SpectralSolution) -> None:
        certificate = found.certificate
        limited = certificate.status is Status.MAX_ITER
        if certificate.converged or (limited and self.eigen_solver == "randomized"):
            return  # who gives a number of passes has asked for no more
        advice = certificate.status.advice_for("spectral").format(
            max_iter=self.max_iter, time_limit=self.time_limit or 0.0, tol=certificate.tol
        )
        known = f"The residual is {certificate.residual:.2g}, rounding {certificate.rounding:.2g}"
        warn(f"{advice} {known}. See certificate_.")

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    # -- components ----------------------------------------------------------------------------

    @takes_tensors
    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Find the components and return those of X, without new kernel values.

        Parameters
        ----------
        X : as in :meth:`fit`
        y : ignored

        Returns
        -------
        components : array of shape (n_samples, n_components)
        """
        self.fit(X, y)
        return self._projections()

    def _projections(self) -> np.ndarray:
        values = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        return values.astype(self._dtype, copy=False)

    @takes_tensors
    def transform(self, X: Any) -> np.ndarray:
        """Return the components of the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_train)

        Returns
        -------
        components : array of shape (n_samples, n_components)
        """
        check_is_fitted(self, "eigenvalues_")
        values = self._expansion_at(X, self._expansion) - self._offset
        return values.astype(self._dtype, copy=False)

    # -- pre-images ----------------------------------------------------------------------------

    def _refuse_preimages(self, X: Any, kernel: Kernel) -> None:
        """Refuse data and kernels that have no pre-images to learn or to look for."""
        if not self.fit_inverse_transform:
            return
        if kernel.pairwise:
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        numbers = kernel.input is Input.OBJECTS and np.asarray(X).dtype.kind in "fiu"
        if kernel.input is not Input.VECTORS and not numbers:  # a function takes anything
            raise ValueError(
                f"Pre-images are vectors, and the kernel {kernel!r} compares others: use "
                "fit_inverse_transform=False."
            )
        if sp.issparse(X):
            raise TypeError(
                "Inverse transform not implemented for sparse matrices: give dense data, or use "
                "fit_inverse_transform=False."
            )
        inner = kernel.kernel if isinstance(kernel, Scaled) else kernel
        if self.fit_inverse_transform == "fixed_point" and not isinstance(inner, RBF):
            raise ValueError(
                f"fit_inverse_transform='fixed_point' is for the RBF kernel, got {kernel!r}: use "
                "'ridge', which takes any kernel of vectors."
            )

    def _fit_inverse(self, X: np.ndarray) -> None:
        self.X_transformed_fit_ = self._projections()
        if self.fit_inverse_transform == "fixed_point":
            return
        self._ridge = KernelRidge(
            self.alpha,
            kernel=self.kernel_,
            tol=1e-8,
            cache_size=self.cache_size,
            n_jobs=self.n_jobs,
        ).fit(self.X_transformed_fit_, X)
        self.dual_coef_ = self._ridge.dual_coef_

    @takes_tensors
    @on_one_blas_thread
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return points whose components are near to the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        points : array of shape (n_samples, n_features)
            As ``fit_inverse_transform`` says. There need be none with just these components.
        """
        check_is_fitted(self, "eigenvalues_")
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and "
                "hence the inverse transform is not available."
            )
        if self.fit_inverse_transform != "fixed_point":
            return self._ridge.predict(X)
        Y = check_array(X, dtype=np.float64)
        if Y.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {Y.shape[1]} features, but there are {self._n_features_out} components."
            )
        weights = Y @ self._expansion
        weights += (1.0 - weights.sum(axis=1, keepdims=True)) / weights.shape[1]
        known = self.X_transformed_fit_
        nearest = ((known**2).sum(axis=1) - 2.0 * Y @ known.T).argmin(axis=1)
        points, lost = fixed_points(self.kernel_, self.support_vectors_, weights, nearest)
        if lost:
            warn(
                f"{lost} of {len(Y)} pre-images have not settled: no point has an image near to "
                "these components. Use a smaller gamma or more components, or 'ridge'.",
                UserWarning,
            )
        return points
