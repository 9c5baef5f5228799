"""Writes the pages of docs/ that are made from code: `python scripts/write_docs.py`.

A unit test fails while a page differs from what its function makes. To add a page, add a line to PAGES.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from command_reference import command_line_markdown
from man_page import man_page

from lastword.kafka.topics.topic_settings import explanations_markdown
from lastword.serve.http.error_codes import error_codes_markdown
from lastword.serve.route_table import routes_markdown
from lastword.teams.serving.board_guest import AbsentBoard

DOCS = Path(__file__).parents[1] / "docs"


def http_markdown() -> str:
    """The page as it is, with the tables that are made from code."""
    page = (DOCS / "http.md").read_text(encoding="utf-8")
    page = with_section(page, "routes", routes_markdown(AbsentBoard().routes))
    return with_section(page, "error codes", error_codes_markdown())


def with_section(page: str, name: str, content: str) -> str:
    """The page with this content between the comments that name the section."""
    start, end = f"<!-- {name}: written by `make docs` -->\n", "<!-- end -->"
    before, _, rest = page.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}{content}\n{end}{after}"


PAGES: dict[str, Callable[[], str]] = {
    "command-line.md": command_line_markdown,
    "http.md": http_markdown,
    "lastword.1": lambda: man_page((DOCS / "settings.md").read_text(encoding="utf-8")),
    "topic-settings.md": explanations_markdown,
}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        sys.stdout.write(f"wrote docs/{name}\n")


if __name__ == "__main__":
    main()
