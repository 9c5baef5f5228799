"""One call for each of several items, in threads: for work that mostly waits for answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_AT_ONCE = 8


def for_each(items: Iterable[_Item], call: Callable[[_Item], _Result]) -> dict[_Item, _Result]:
    """The result for each item; the first error is raised when the calls that have begun have ended."""
    keys = list(items)
    if len(keys) == 1:
        return {keys[0]: call(keys[0])}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(keys, pool.map(call, keys), strict=True))
