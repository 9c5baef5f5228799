"""Which names a topic may have, and which topics lastword never changes."""

from __future__ import annotations

import re

from lastword.core.errors import BadInput

LONGEST_NAME = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def refuse_illegal(name: str, whose: str = "topic", longest: int = LONGEST_NAME) -> None:
    """BadInput for a name that Kafka refuses; `whose` is the kind of thing whose name is part of a topic's name."""
    if not name:
        raise BadInput(f"a {whose} needs a name: letters, digits, '.', '_' and '-'")
    if name in (".", ".."):
        raise BadInput(f"a {whose} can't be called {name!r}: choose another name")
    if not _LEGAL.fullmatch(name):
        wrong = next(character for character in name if not _LEGAL.fullmatch(character))
        raise BadInput(f"{whose} name {name!r} has {wrong!r} in it: use only letters, digits, '.', '_' and '-'")
    if len(name) > longest:
        raise BadInput(f"{whose} name {name[:20]}... has {len(name)} characters: use at most {longest}")


def is_legal(name: str) -> bool:
    try:
        refuse_illegal(name)
    except BadInput:
        return False
    return True


def name_warnings(name: str) -> list[str]:
    if "." in name and "_" in name:
        both = f"topic name {name!r} has both '.' and '_': Kafka's metrics show the two alike"
        return [f"{both}, and Kafka refuses a second topic that differs only in these; use only one of them"]
    return []


def is_internal(name: str) -> bool:
    """Kafka's own topics, and by custom those of other tools, start with two underscores."""
    return name.startswith("__")


def refuse_internal(name: str, act: str) -> None:
    if is_internal(name):
        raise BadInput(f"topic {name!r} is internal, lastword does not {act} it: name one without the leading '__'")
