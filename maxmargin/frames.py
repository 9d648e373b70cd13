"""Data frames: what is asked of their columns before scikit-learn looks at them."""

from __future__ import annotations

from collections import Counter
from typing import Any


def refuse_twin_columns(X: Any) -> None:
    """Refuse a data frame in which several columns have the same name.

    >>> import pandas as pd
    >>> from maxmargin.frames import refuse_twin_columns
    >>> refuse_twin_columns(pd.DataFrame([[1, 2]], columns=["width", "width"]))
    Traceback (most recent call last):
    ...
    ValueError: X has several columns of the same name, 'width' (2 times), ...
    """
    columns = getattr(X, "columns", None)
    if columns is None or len(set(columns)) == len(columns):
        return
    twins = [f"{name!r} ({count} times)" for name, count in Counter(columns).items() if count > 1]
    raise ValueError(
        f"X has several columns of the same name, {', '.join(twins)}, so that features cannot be "
        "told apart by their names: rename the columns, or pass X.to_numpy()."
    )
