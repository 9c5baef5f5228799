"""The console: a web page over the HTTP API. All its files are in `page/`, and are sent unchanged.

Plain HTML, CSS and JavaScript modules: no build step, and nothing is fetched from another server. Python only knows
which files there are. Read `page/main.js` first, then `page/views/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FIRST = "index.html"

_PAGE = Path(__file__).parent / "page"
# Other files are not sent: they may be an editor's.
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    media_type: str
    content: bytes


def page_files(folder: Path = _PAGE) -> dict[str, PageFile]:
    """Every file of the page by its path in the folder, with slashes; all are read now, so no request opens a file."""
    return {
        path.relative_to(folder).as_posix(): PageFile(_MEDIA_TYPES[path.suffix], path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.suffix in _MEDIA_TYPES and path.is_file() and not path.name.startswith(".")
    }
