"""The same for several things at once, for work that mostly waits for answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")

_AT_ONCE = 8


def for_each(items: Iterable[_Item], make: Callable[[_Item], _Made]) -> dict[_Item, _Made]:
    """What is made of each item, by item; the first error is raised when those that have begun have ended."""
    chosen = list(items)
    if len(chosen) == 1:
        return {chosen[0]: make(chosen[0])}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(chosen, pool.map(make, chosen), strict=True))
