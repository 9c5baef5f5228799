"""Of requirements.lock those entries that an installation needs: pip takes no hashes from a file of constraints."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).parents[2] / "requirements.lock"
_ENTRY = re.compile(r"^([\w.-]+)==(?:.*\n)(?:    .*\n)*", re.MULTILINE)


def entries(lock: Path) -> dict[str, list[str]]:
    """The entries of a lock by name, each with its hashes. A package may have one for each range of Pythons."""
    found: dict[str, list[str]] = {}
    for entry in _ENTRY.finditer(lock.read_text()):
        found.setdefault(canonicalize_name(entry[1]), []).append(entry[0])
    return found


def versions(lock: Path) -> dict[str, list[str]]:
    """The locked versions of each package, with their markers."""
    return {name: [each.partition("\\")[0].strip() for each in several] for name, several in entries(lock).items()}


def locked(requirements: Iterable[str], extras: Collection[str] = ()) -> str:
    """The entries for the requirements of a package, and for all that they need, as a file for pip."""
    known = entries(LOCK)
    return "".join(entry for name in sorted(_needed(requirements, extras)) for entry in known[name])


def project_requirements() -> set[str]:
    """The names of all that lastword needs without extras, as pyproject.toml says."""
    project = tomllib.loads((LOCK.parent / "pyproject.toml").read_text())["project"]
    return _needed(project["dependencies"], ())


def _needed(requirements: Iterable[str], extras: Collection[str]) -> set[str]:
    found: set[str] = set()
    waiting = [(Requirement(line), extras) for line in requirements]
    while waiting:
        requirement, chosen = waiting.pop()
        name = canonicalize_name(requirement.name)
        marker = requirement.marker
        is_wanted = marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *chosen))
        if is_wanted and name not in found:
            found.add(name)
            # The packages of .venv have the locked versions.
            waiting += [(Requirement(line), requirement.extras) for line in requires(name) or ()]
    return found
