"""The programs that the HTTP benchmark needs from the system's packages."""

from __future__ import annotations

import os
import shutil
import subprocess

# No service is started by an installation at this level.
_QUIET = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}


def why_missing(*programs: str) -> str | None:
    """None if the programs are installed, or could be installed now; otherwise the reason."""
    missing = [program for program in programs if not shutil.which(program)]
    if not missing:
        return None
    problem = f"{' and '.join(missing)} not on the PATH"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"{problem}, and only root with apt-get can install them here"
    if not _apt_get("install", *missing) and not (_apt_get("update") and _apt_get("install", *missing)):
        return f"{problem}, and apt-get could not install them"
    return None


def _apt_get(*words: str) -> bool:
    command = ["apt-get", "--quiet", "--yes", *words]
    return subprocess.run(command, env={**os.environ, **_QUIET}, capture_output=True).returncode == 0
