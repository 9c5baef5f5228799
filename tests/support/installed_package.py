"""The built wheel in an empty virtual environment, with locked requirements and nothing else."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

from support.command_line import CommandLine
from support.locked_requirements import locked

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class InstalledCommand(CommandLine):
    """The command of a virtual environment, with no setting of Python from outside."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "lastword"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def environment(self) -> dict[str, str]:
        foreign = ("PYTHON", "PWD", "OLDPWD", "VIRTUAL_ENV", "MAKE", "MANPATH")
        inherited = {name: value for name, value in super().environment().items() if not name.startswith(foreign)}
        return {**inherited, "PATH": f"{self.folder / 'bin'}:{inherited['PATH']}"}


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        [name] = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(files.read(name).decode())


def install(wheel: Path, folder: Path, extras: Collection[str] = ()) -> None:
    """Makes the environment in the folder. What the wheel needs is checked against the hashes of the lock."""
    venv.create(folder, with_pip=False, symlinks=True)
    requirements = folder / "requirements.lock"
    requirements.write_text(locked(metadata(wheel).get_all("Requires-Dist", []), extras))
    _pip(folder, "install", "--no-deps", "--require-hashes", "--requirement", str(requirements))
    _pip(folder, "install", "--no-deps", "--no-index", str(wheel))
    # Has the wheel all that it says it needs?
    _pip(folder, "check")


def _pip(folder: Path, *words: str) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    done = subprocess.run([*pip, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"pip {' '.join(words)}: {done.stdout[-1000:]}{done.stderr[-2000:]}"


def files_of_checkout(pids: Collection[int]) -> set[str]:
    """The files and folders of this checkout that processes have in use, or name on their command lines. For Linux."""
    found: set[str] = set()
    for pid in pids:
        proc = Path(f"/proc/{pid}")
        # It may end, or close a file, meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            texts = [(proc / name).read_text(errors="replace").replace("\0", "\n") for name in ("cmdline", "maps")]
            for link in (proc / "cwd", *(proc / "fd").iterdir()):
                with suppress(FileNotFoundError):
                    texts.append(str(link.readlink()))
            found |= {line.strip() for text in texts for line in text.splitlines() if f"{ROOT}/" in f"{line}/"}
    return found
