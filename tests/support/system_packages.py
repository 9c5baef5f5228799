"""Programs of the system that a test runs: those on the path, or installed by apt-get where root can."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

_INSTALL = ("apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300")


class NotInstalled(Exception):
    """A program is missing, and the reason why it could not be installed."""


def program(name: str, package: str) -> Path:
    """The program, installed if it is missing. Otherwise skips the test with the reason; if `CI` is set, fails it."""
    try:
        return find_program((name,), (package,))
    except NotInstalled as why:
        skip_or_fail(f"no {name}: {why}")


def skip_or_fail(reason: str) -> NoReturn:
    """Where tests are run for others, a skipped test would look like one that is right: there it fails."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def find_program(names: tuple[str, ...], packages: tuple[str, ...]) -> Path:
    """The first of the names that is on the path, after an installation of the packages if none is."""
    # One at a time: two runs of the tests may install at the same moment.
    with (Path(tempfile.gettempdir()) / f"lastword-{packages[0]}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _on_path(names)
        if found is None:
            install(*packages)
            found = _on_path(names)
    if found is None:
        raise NotInstalled(f"apt-get installed {' '.join(packages)}, but {names[0]} is not on the path")
    return found


def install(*packages: str) -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise NotInstalled(f"only root with apt-get can install it here: install {packages[0]} yourself")
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # The package lists may be missing or too old.
    for words in ((*_INSTALL, *packages), ("apt-get", "update", "-q"), (*_INSTALL, *packages)):
        done = subprocess.run(words, env=environ, capture_output=True, text=True)
        if done.returncode == 0 and "install" in words:
            return
    raise NotInstalled(f"apt-get could not install {' '.join(packages)}: {done.stderr.strip()[-500:]}")


def _on_path(names: tuple[str, ...]) -> Path | None:
    return next((Path(path) for name in names if (path := shutil.which(name)) is not None), None)
