"""A name in an expression of Spark SQL, replaced by another expression."""

from __future__ import annotations

import re

# What may hold the name without meaning it: strings (raw ones end at the first quote), quoted names, comments.
_APART = r"""[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"""


def with_name(expression: str, name: str, meaning: str) -> str:
    """The expression with `meaning` in place of `name`, except in strings and comments, and as a field or function."""
    quoted = f"`{name}`"
    pattern = re.compile(rf"({_APART})|(?<![\w.]){re.escape(name)}(?!\w|\s*\()", re.IGNORECASE | re.DOTALL)

    def put(match: re.Match[str]) -> str:
        apart: str | None = match[1]
        return meaning if apart is None or apart.lower() == quoted else apart

    return pattern.sub(put, expression)
