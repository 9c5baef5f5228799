"""stub"""

from __future__ import annotations

from typing import Any


class BuildStopped(Exception):
    pass


def build(*a: Any, **k: Any) -> bool:
    return False
