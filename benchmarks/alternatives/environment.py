"""A Python environment for the packages that only alternatives need: locked by hashes, made once."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring.plan import LeftOut, Plan

_LOCK = Path(__file__).with_name("python.lock")
_PACKAGES = "kafka-python, Quix Streams, FastAPI, uvicorn and DuckDB"


def python_of_alternatives(plan: Plan) -> Path:
    """The interpreter with the packages of python.lock; LeftOut if pip can't install them."""
    lock = _LOCK.read_bytes()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parent = plan.home / "bench"
    folder = parent / f"python{version}-{hashlib.sha256(lock).hexdigest()[:12]}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with (parent / ".lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if not (folder / "whole").exists():
                plan.report(f"installing {_PACKAGES} into a separate environment")
                _install(folder)
    except (OSError, subprocess.CalledProcessError) as failure:
        shutil.rmtree(folder, ignore_errors=True)
        raise LeftOut(f"{_PACKAGES}, because they could not be installed: {_why(failure)}") from None
    return folder / "bin" / "python"


def locked_version(package: str) -> str:
    """The version of a package in python.lock."""
    for line in _LOCK.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{package}=="):
            return line.removeprefix(f"{package}==").split()[0]
    raise LeftOut(f"{package}, because it is not in python.lock")


def alternative_in(python: Path, module: str, *words: str) -> list[str]:
    """The command of an alternative that runs in the other environment, because it imports nothing from lastword."""
    # -W: its dependencies warn about each other. -I: packages of this checkout stay out.
    return [str(python), "-I", "-W", "ignore", str(_LOCK.with_name(f"{module}.py")), *words]


def _install(folder: Path) -> None:
    pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    _run(sys.executable, "-m", "venv", "--clear", folder)
    _run(*pip, "--require-hashes", "--only-binary", ":all:", "--requirement", _LOCK)
    # Last: an interrupted installation starts again.
    (folder / "whole").touch()


def _run(*command: str | Path) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


def _why(failure: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(failure, OSError):
        return failure.strerror or str(failure)
    lines: list[str] = failure.stderr.strip().splitlines()
    return lines[-1] if lines else f"pip ended with {failure.returncode}"
