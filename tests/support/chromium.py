"""The Chromium of this machine, which is installed where that can be done; Playwright's own is never fetched."""

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
# Badges are emoji, and a page without the letters of its text shows boxes.
_PACKAGES = ("chromium", "fonts-dejavu-core", "fonts-noto-color-emoji")
_INSTALL = ("apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300")
_SWITCHES = (
    # Nothing but this machine has an address.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # Else a machine with few cores draws by a software of its own for 3D.
    "--disable-gpu",
    "--force-color-profile=srgb",
)


class NoBrowser(Exception):
    """There is none, and why none could be installed."""


def find_chromium() -> Path:
    """`LASTWORD_CHROMIUM`, or the one of the machine, or one that is installed now; NoBrowser where that fails."""
    chosen = os.environ.get("LASTWORD_CHROMIUM")
    if chosen is not None:
        if shutil.which(chosen) is None:
            raise NoBrowser(f"LASTWORD_CHROMIUM is {chosen}, and that is no program")
        return Path(chosen)
    # One at a time: two runs of the tests may look for it at the same moment.
    with (Path(tempfile.gettempdir()) / "lastword-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _on_path()
        if found is None:
            _install()
            found = _on_path()
    if found is None:
        raise NoBrowser("apt-get installed chromium, and it is not on the path")
    return found


def ensure_fonts() -> None:
    """Emoji can be drawn: the font is installed where it is missing and can be."""
    listed = subprocess.run(["fc-list", ":charset=1f50c"], capture_output=True, text=True).stdout
    if not listed.strip():
        _install()


@contextmanager
def chromium_of(path: Path, home: Path) -> Iterator[Browser]:
    """A browser without a window, with a profile that is gone afterwards; whatever else it keeps is below `home`."""
    folders = {"HOME": home, "XDG_CONFIG_HOME": home / "config", "XDG_CACHE_HOME": home / "cache"}
    environ = {**os.environ, **{name: str(folder) for name, folder in folders.items()}}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_SWITCHES), env={**environ})
        try:
            yield browser
        finally:
            browser.close()


def _on_path() -> Path | None:
    return next((Path(found) for name in _NAMES if (found := shutil.which(name)) is not None), None)


def _install() -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise NoBrowser(
            f"none of {', '.join(_NAMES[:3])} is on the path, and only root with apt-get can install it here: "
            "install one, or say where it is with LASTWORD_CHROMIUM"
        )
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # What is known of the packages may be missing or too old to fetch them.
    for words in ((*_INSTALL, *_PACKAGES), ("apt-get", "update", "-q"), (*_INSTALL, *_PACKAGES)):
        done = subprocess.run(words, env=environ, capture_output=True, text=True)
        if done.returncode == 0 and "install" in words:
            return
    raise NoBrowser(f"apt-get could not install {' '.join(_PACKAGES)}: {done.stderr.strip()[-500:]}")
