"""`did you mean ...?`: the name nearest to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`did you mean 'x'?`, or the empty text when no name is near."""
    # Imported inside: only a mistyped name pays for the import.
    from difflib import get_close_matches

    near = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""
