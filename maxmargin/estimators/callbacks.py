"""Who sees a fit begin and end: scikit-learn's callbacks (1.9 and later), and who pressed Ctrl-C.

The fit is the root task; every report of a solver is a subtask of it. A callback that returns True
at the end of one stops the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import Any

from maxmargin.progress import Listener, Progress, raising_interrupts
from maxmargin.trace import Trace

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's: there are no callbacks to support."""

    def with_callbacks(method: Any) -> Any:
        """Leave the method as it is."""
        return method


def observed(fit: Any) -> Any:
    """Let scikit-learn's callbacks see a fit begin and end, and time it; raise Ctrl-C after it."""

    @with_callbacks
    def told(machine: Any, X: Any, y: Any, *args: Any, **options: Any) -> Any:
        context = machine._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=machine, X=X, y=y)
        fit(machine, X, y, *args, **options)
        context.call_on_fit_task_end(
            estimator=machine, X=X, y=y, reconstruction_attributes=lambda: _fitted(machine)
        )
        return machine

    @wraps(fit)
    def observed_fit(machine: Any, X: Any, y: Any = None, *args: Any, **options: Any) -> Any:
        listening = getattr(machine, "_skl_callbacks", None)
        began, before = perf_counter(), dict(vars(machine))
        with raising_interrupts():
            try:
                (told if listening else fit)(machine, X, y, *args, **options)
            except Warning:  # an error by the user's filter: it comes after the model is whole
                raise
            except BaseException as error:  # no mixture of two fits
                machine.__dict__ = before
                if isinstance(error, MemoryError):
                    raise _with_advice(machine, error) from error
                raise
            machine.fit_time_ = perf_counter() - began
        return machine

    return observed_fit


def _with_advice(machine: Any, error: MemoryError) -> MemoryError:
    """Return the error of a fit that ran out of memory, with what to do."""
    given = machine.get_params(deep=False)
    if "cache_size" not in given or "cache_size" in str(error):
        return error
    return MemoryError(
        f"{error or 'Out of memory'}. The fit of {type(machine).__name__} needs more memory than "
        f"there is, with cache_size={given['cache_size']!r} (MB for kernel values; 'auto' is a "
        "quarter of what is free): lower cache_size, fit fewer rows, or free memory."
    )


def _fitted(machine: Any) -> dict[str, Any]:
    parameters = machine.get_params(deep=False)
    return {name: value for name, value in vars(machine).items() if name not in parameters}


def listeners_of(machine: Any) -> list[Listener]:
    """Return who listens to a fit: callback, trace (from now on ``trace_``) and scikit-learn's."""
    vars(machine).pop("trace_", None)
    given = [one for one in (machine.trace, machine.callback) if isinstance(one, Trace)]
    if len(given) == 2 and given[0] is not given[1]:
        raise ValueError("Give one Trace, as trace or as callback: a fit is recorded once.")
    for trace in given:
        trace.clear()
    listeners = [] if machine.callback is None else [machine.callback]
    if machine.trace or isinstance(machine.trace, Trace):  # an empty one is false
        machine.trace_ = given[0] if given else Trace()
        listeners += [] if machine.trace_ is machine.callback else [machine.trace_]
    return listeners + _scikit_learn_listeners(machine)


def _scikit_learn_listeners(machine: Any) -> list[Callable[[Progress], bool]]:
    """Return the listener that passes reports on to scikit-learn's callbacks, if any are set."""
    if not getattr(machine, "_skl_callbacks", None):
        return []

    def tell(progress: Progress) -> bool:
        context = machine._callback_fit_ctx.subcontext(task_name="report")
        context.call_on_fit_task_begin(estimator=machine)
        return bool(context.call_on_fit_task_end(estimator=machine))

    return [tell]
