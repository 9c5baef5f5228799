"""What should run, as a file: the supervisor reads it, and stops as soon as the parts are not wanted any more.

up/wanted.json              the parts with their commands, and whether they are wanted
up/turn.lock                held while a command starts or stops the parts
up/owner.lock               held by an `up` in the foreground: the parts stop with it
up/supervisor/running.lock  held by the supervisor; beside it pid and log
up/PART/running.lock        held by the part's process as long as it lives; beside it pid, log and health.json
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from lastword.core.durable import write_durably
from lastword.core.errors import LastwordError
from lastword.core.home import private_folder
from lastword.core.shapes.json_text import from_json_text, json_text
from lastword.processes.process_lock import ProcessFiles

SUPERVISOR = "supervisor"
OWNER_LOCK = "owner.lock"
TOKENS = "tokens"
# The command line of this program, for the commands of parts.
LASTWORD = (sys.executable, "-m", "lastword")


@dataclass(frozen=True, kw_only=True)
class PartFiles(ProcessFiles):
    """The files of one part."""

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def health(self) -> Path:
        return self.folder / "health.json"


class Part(Struct, frozen=True, kw_only=True):
    """A process that is kept running."""

    name: str
    command: tuple[str, ...]


class DesiredState(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`wanted.json`: the parts in the order of their start, and the options of their `up` (`choices`)."""

    is_wanted: bool = False
    # Whether the parts stop with the `up` that holds the owner's lock.
    is_owned: bool = False
    parts: tuple[Part, ...]
    # The folder of a cluster that is restarted when a broker is gone, and the command that starts it.
    cluster: str | None = None
    start_cluster: tuple[str, ...]
    # Whether `down` stops the cluster: true if an `up` started it.
    ends_cluster: bool = False
    choices: Mapping[str, Any] = {}


NOTHING_WANTED = DesiredState(parts=(), start_cluster=())


def load_desired_state(folder: Path) -> DesiredState:
    """What should run; nothing if the file is missing."""
    path = folder / "wanted.json"
    try:
        return from_json_text(path.read_bytes(), DesiredState)
    except FileNotFoundError:
        return NOTHING_WANTED
    except (OSError, ValueError) as damage:
        raise LastwordError(
            f"{path} can't be read ({damage}): remove it, and run  lastword up  or  lastword down  again"
        ) from None


def save_desired_state(folder: Path, wanted: DesiredState) -> None:
    private_folder(folder)
    write_durably(folder / "wanted.json", json_text(wanted, indent=2).encode())


def files_of(folder: Path, name: str) -> PartFiles:
    return PartFiles(folder=folder / name)
