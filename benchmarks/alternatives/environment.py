"""The Python environment of the alternatives that lastword does not need: locked by hashes, made once."""

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
    """The interpreter that has what python.lock lists; LeftOut when pip can't install it."""
    lock = _LOCK.read_bytes()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    kept = plan.home / "bench"
    folder = kept / f"python{version}-{hashlib.sha256(lock).hexdigest()[:12]}"
    try:
        kept.mkdir(parents=True, exist_ok=True)
        with (kept / ".lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if not (folder / "whole").exists():
                plan.report(f"installing {_PACKAGES} into an environment of their own")
                _install(folder)
    except (OSError, subprocess.CalledProcessError) as failure:
        shutil.rmtree(folder, ignore_errors=True)
        raise LeftOut(f"{_PACKAGES}, because they could not be installed: {_why(failure)}") from None
    return folder / "bin" / "python"


def locked_version(package: str) -> str:
    """The version of a package that the alternatives run with."""
    for line in _LOCK.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{package}=="):
            return line.removeprefix(f"{package}==").split()[0]
    raise LeftOut(f"{package}, because it is not in python.lock")


def alternative_in(python: Path, module: str, *words: str) -> list[str]:
    """The command of an alternative that imports nothing of lastword's, so that it runs in the other environment."""
    # Its dependencies warn about each other, and -I keeps this checkout's packages out of it.
    return [str(python), "-I", "-W", "ignore", str(_LOCK.with_name(f"{module}.py")), *words]


def _install(folder: Path) -> None:
    pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    _run(sys.executable, "-m", "venv", "--clear", folder)
    _run(*pip, "--require-hashes", "--only-binary", ":all:", "--requirement", _LOCK)
    # Last: what was interrupted is made anew.
    (folder / "whole").touch()


def _run(*command: str | Path) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


def _why(failure: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(failure, OSError):
        return failure.strerror or str(failure)
    told: list[str] = failure.stderr.strip().splitlines()
    return told[-1] if told else f"pip ended with {failure.returncode}"
