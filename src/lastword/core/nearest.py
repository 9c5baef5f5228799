"""The nearest known name to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?`, or the empty text when nothing known is near."""
    # Imported here: only a mistake pays for it.
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""
