"""The Chromium of this machine, installed if possible; Playwright's own browser is never downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from support.system_packages import NotInstalled, find_program, install

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
# Badges are emoji: without a font for them the page shows boxes.
_PACKAGES = ("chromium", "fonts-dejavu-core", "fonts-noto-color-emoji")
_SWITCHES = (
    # No host but this machine can be resolved.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # Otherwise a machine with few cores renders 3D in software.
    "--disable-gpu",
    "--force-color-profile=srgb",
)


def find_chromium() -> Path:
    """`LASTWORD_CHROMIUM`, or the browser of the machine, or one that is installed now; NotInstalled if that fails."""
    chosen = os.environ.get("LASTWORD_CHROMIUM")
    if chosen is None:
        return find_program(_NAMES, _PACKAGES)
    if shutil.which(chosen) is None:
        raise NotInstalled(f"LASTWORD_CHROMIUM is {chosen}, which is no program")
    return Path(chosen)


def ensure_fonts() -> None:
    """Installs the font of the emoji if it is missing."""
    listed = subprocess.run(["fc-list", ":charset=1f50c"], capture_output=True, text=True).stdout
    if not listed.strip():
        install(*_PACKAGES)


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
