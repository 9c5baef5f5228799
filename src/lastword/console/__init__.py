"""The console: a page in a browser over what the server answers. All of it is in `page/`, and is sent as it is there.

Nothing is built and nothing is fetched from elsewhere: plain HTML, CSS and JavaScript modules. Python only knows which
files there are.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FIRST = "index.html"

_PAGE = Path(__file__).parent / "page"
# What is of another kind is not for a browser: it may be an editor's.
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
    """Every file of the page by its path in the folder, with slashes; read at once: no request ever opens a file."""
    return {
        path.relative_to(folder).as_posix(): PageFile(_MEDIA_TYPES[path.suffix], path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.suffix in _MEDIA_TYPES and path.is_file() and not path.name.startswith(".")
    }
