"""The console over HTTP: the files of its page, with the headers that a browser needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lastword.console import FIRST, PageFile
from lastword.serve.http.answers import Answer, Headers, Refused
from lastword.serve.http.etags import file_tag, is_among
from lastword.serve.http.queries import NoQuery
from lastword.serve.http.requests import Request

# The page loads files only from this server, so a script inside a value never runs.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_GUARDS: Headers = [
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    # The browser asks each time, and mostly gets a 304. So it never mixes files of two versions.
    ("cache-control", "no-cache"),
]


class _Ready(NamedTuple):
    tag: str
    whole: Answer


class Console:
    def __init__(self, files: Mapping[str, PageFile]) -> None:
        self._files = {name: _ready(file) for name, file in files.items()}

    async def page(self, request: Request, _query: NoQuery) -> Answer:
        return self.answer(FIRST, request.headers.get("if-none-match"))

    async def file(self, request: Request, _query: NoQuery, name: str) -> Answer:
        return self.answer(name, request.headers.get("if-none-match"))

    def answer(self, name: str, if_none_match: str | None) -> Answer:
        """The file; 304 if the client already has it, Refused if the console has no such file."""
        file = self._files.get(name)
        if file is None:
            raise Refused("no_such_route", "the console has no such file", "its page is at /")
        if if_none_match is not None and is_among(file.tag, if_none_match):
            return Answer(304, [*_GUARDS, ("etag", file.tag)], b"")
        return file.whole


def _ready(file: PageFile) -> _Ready:
    tag = file_tag(file.content)
    headers = [("content-type", file.media_type), *_GUARDS, ("etag", tag)]
    return _Ready(tag, Answer(200, headers, file.content))
