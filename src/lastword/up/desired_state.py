"""What should run, on disk: whoever supervises reads it, and ends as soon as it is not wanted any more.

up/wanted.json              the parts with their commands, and whether they are wanted
up/turn.lock                held while a command starts or ends them
up/owner.lock               held by an `up` in the foreground: they end with it
up/supervisor/running.lock  held by the supervisor; beside it pid and log
up/PART/running.lock        held by the part's process as long as it lives; beside it pid, log and health.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lastword.core.durable import write_durably
from lastword.core.errors import LastwordError
from lastword.core.home import private_folder

SUPERVISOR = "supervisor"
OWNER_LOCK = "owner.lock"
TOKENS = "tokens"
# The command line of this program, for the commands of parts.
LASTWORD = (sys.executable, "-m", "lastword")


@dataclass(frozen=True, kw_only=True)
class PartFiles:
    """The places of one process."""

    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def running(self) -> Path:
        return self.folder / "running.lock"

    @property
    def pid(self) -> Path:
        return self.folder / "pid"

    @property
    def health(self) -> Path:
        return self.folder / "health.json"


@dataclass(frozen=True, kw_only=True)
class Part:
    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DesiredState:
    """The parts, in the order of their start; `choices` are those of the `up` that asked for them."""

    is_wanted: bool = False
    # Whether they end with the `up` that holds the owner's lock.
    is_owned: bool = False
    parts: tuple[Part, ...] = ()
    # A cluster that is to be started again when a broker of it is gone: its folder, and the command that does it.
    cluster: str | None = None
    start_cluster: tuple[str, ...] = ()
    # Whether `down` stops the cluster: an `up` started it when no broker of it ran.
    ends_cluster: bool = False
    choices: Mapping[str, Any] = field(default_factory=dict)


def load_wanted(folder: Path) -> DesiredState:
    """What should run; nothing where nobody ever asked for anything."""
    path = folder / "wanted.json"
    try:
        told = json.loads(path.read_text())
        parts = tuple(Part(name=part["name"], command=tuple(part["command"])) for part in told["parts"])
        return DesiredState(**{**told, "parts": parts, "start_cluster": tuple(told["start_cluster"])})
    except FileNotFoundError:
        return DesiredState()
    except (OSError, ValueError, TypeError, KeyError) as damage:
        raise LastwordError(
            f"{path} can't be read ({damage}): remove it, and run  lastword up  or  lastword down  again"
        ) from None


def save_wanted(folder: Path, wanted: DesiredState) -> None:
    private_folder(folder)
    write_durably(folder / "wanted.json", json.dumps(asdict(wanted), indent=2).encode())


def files_of(folder: Path, name: str) -> PartFiles:
    return PartFiles(folder=folder / name)
