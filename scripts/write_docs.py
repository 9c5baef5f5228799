"""Writes the pages of docs/ that are made from code: `python scripts/write_docs.py`.

A unit test fails while a page differs from what its function makes. To add a page, add a line to PAGES.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from command_reference import command_line_markdown

from lastword.kafka.topics.topic_settings import explanations_markdown

PAGES: dict[str, Callable[[], str]] = {
    "command-line.md": command_line_markdown,
    "topic-settings.md": explanations_markdown,
}


def main() -> None:
    docs = Path(__file__).parents[1] / "docs"
    for name, page in PAGES.items():
        (docs / name).write_text(page(), encoding="utf-8")
        sys.stdout.write(f"wrote docs/{name}\n")


if __name__ == "__main__":
    main()
