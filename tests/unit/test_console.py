"""The console's page over HTTP: its files as they are, told to a browser with what keeps it safe."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from lastword.console import FIRST, PageFile, page_files
from lastword.serve.http.console_files import Console
from lastword.serve.http.limits import Limits
from lastword.serve.http.tokens import Tokens
from lastword.serve.service import Service
from support.service_calls import ask, service_of

ROOT = Path(__file__).parents[2]
TOKENS = Tokens(reading=["read-0123456789abcdef"], writing=[])


def test_the_page_is_at_the_root_and_its_files_are_beside_it() -> None:
    service = service_of()
    page = ask(service, "/")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for name, file in page_files().items():
        told = ask(service, f"/console/{name}")
        assert (told.status, told.body, told.headers["content-type"]) == (200, file.content, file.media_type)
    assert ask(service, f"/console/{FIRST}") == page
    service.close()


def test_a_browser_runs_what_comes_from_here_and_nothing_else() -> None:
    service = service_of()
    headers = ask(service, "/").headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == rules["frame-ancestors"] == "'none'"
    assert {rules[each] for each in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
    assert (rules["require-trusted-types-for"], rules["trusted-types"]) == ("'script'", "'none'")
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-cache"
    service.close()


@pytest.mark.parametrize("path", ["/console/", "/console/nothing.js", "/console/../__init__.py", "/console//etc"])
def test_what_is_no_file_of_the_page_is_not_found(path: str) -> None:
    service = service_of()
    told = ask(service, path)
    assert (told.status, told.code) == (404, "no_such_route")
    service.close()


def test_what_a_browser_has_is_not_sent_again() -> None:
    service = service_of()
    page = ask(service, "/")
    again = ask(service, "/", if_none_match=f"W/{page.headers['etag']}")
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", page.headers["etag"])
    assert again.headers["content-security-policy"] == page.headers["content-security-policy"]
    assert ask(service, "/", if_none_match='"0000000000000000"').status == 200
    service.close()


def test_a_tag_changes_with_the_content() -> None:
    tags = {
        dict(Console({"a.js": PageFile("text/javascript", content)}).answer("a.js", None).headers)["etag"]
        for content in (b"1", b"2")
    }
    assert len(tags) == 2


def test_a_long_file_is_compressed() -> None:
    name, file = max(page_files().items(), key=lambda each: len(each[1].content))
    service = service_of()
    told = ask(service, f"/console/{name}", accept_encoding="gzip")
    assert (told.headers["content-encoding"], gzip.decompress(told.body)) == ("gzip", file.content)
    service.close()


def test_the_page_needs_no_token_and_what_it_shows_does() -> None:
    service = Service([], Limits(), TOKENS)
    assert [ask(service, path).status for path in ("/", f"/console/{FIRST}", "/tables")] == [200, 200, 401]
    service.close()


def test_only_what_is_for_a_browser_is_a_file_of_the_page(tmp_path: Path) -> None:
    for name in ("index.html", "views/board.js", "index.html~", "notes.md", ".hidden.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert sorted(page_files(tmp_path)) == ["index.html", "views/board.js"]


def test_the_wheel_has_every_file_of_the_page(tmp_path: Path) -> None:
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(made) as wheel:
        packed = {name for name in wheel.namelist() if name.startswith("lastword/console/page/")}
    assert packed >= {f"lastword/console/page/{name}" for name in page_files()}
