"""The Chromium of this machine, installed if possible; Playwright's own browser is never downloaded."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
# Badges are emoji: without a font for them the page shows boxes.
_PACKAGES = ("chromium", "fonts-dejavu-core", "fonts-noto-color-emoji")
_INSTALL = ("apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300")
_SWITCHES = (
    # No host but this machine can be resolved.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # Otherwise a machine with few cores renders 3D in software.
    "--disable-gpu",
    "--force-color-profile=srgb",
)


class NoBrowser(Exception):
    """No browser was found, and the reason why none could be installed."""


def find_chromium() -> Path:
    """`LASTWORD_CHROMIUM`, or the browser of the machine, or one that is installed now; NoBrowser if that fails."""
    chosen = os.environ.get("LASTWORD_CHROMIUM")
    if chosen is not None:
        if shutil.which(chosen) is None:
            raise NoBrowser(f"LASTWORD_CHROMIUM is {chosen}, which is no program")
        return Path(chosen)
    # One at a time: two runs of the tests may install at the same moment.
    with (Path(tempfile.gettempdir()) / "lastword-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = _on_path()
        if program is None:
            _install()
            program = _on_path()
    if program is None:
        raise NoBrowser("apt-get installed chromium, but it is not on the path")
    return program


def ensure_fonts() -> None:
    """Installs the font of the emoji if it is missing."""
    listed = subprocess.run(["fc-list", ":charset=1f50c"], capture_output=True, text=True).stdout
    if not listed.strip():
        _install()


@contextmanager
def chromium_of(path: Path, home: Path) -> Iterator[Browser]:
    """A browser without a window and with a temporary profile; its other files are below `home`."""
    folders = {"HOME": home, "XDG_CONFIG_HOME": home / "config", "XDG_CACHE_HOME": home / "cache"}
    environ = {**os.environ, **{name: str(folder) for name, folder in folders.items()}}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_SWITCHES), env={**environ})
        try:
            yield browser
        finally:
            browser.close()


def _on_path() -> Path | None:
    return next((Path(path) for name in _NAMES if (path := shutil.which(name)) is not None), None)


def _install() -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise NoBrowser(
            f"none of {', '.join(_NAMES[:3])} is on the path, and only root with apt-get can install it here: "
            "install one, or set LASTWORD_CHROMIUM to its path"
        )
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # The package lists may be missing or too old.
    for words in ((*_INSTALL, *_PACKAGES), ("apt-get", "update", "-q"), (*_INSTALL, *_PACKAGES)):
        done = subprocess.run(words, env=environ, capture_output=True, text=True)
        if done.returncode == 0 and "install" in words:
            return
    raise NoBrowser(f"apt-get could not install {' '.join(_PACKAGES)}: {done.stderr.strip()[-500:]}")
