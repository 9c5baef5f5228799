"""Gathers the pages of the site into a folder: `python scripts/gather_pages.py build/pages`.

The folder has the shape of the repository, so every link between pages is right in both. Beside the pages it holds the
files that they link to: programs, pipelines, pictures.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")


def links(page: Path) -> list[tuple[Path, str]]:
    """Each link of a page to a file of the repository, with the anchor, which may be empty."""
    found = _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    return [((page.parent / target).resolve() if target else page, anchor) for target, anchor in found]


def gather(folder: Path) -> None:
    """Leaves in the folder exactly the pages and the files that they link to."""
    shutil.rmtree(folder, ignore_errors=True)
    linked = {target for page in PAGES for target, _ in links(page) if not target.is_dir()}
    for path in {*PAGES, *linked}:
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
