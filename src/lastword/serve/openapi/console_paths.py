"""The page of the console in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping

from lastword.console import FIRST, PageFile
from lastword.serve.openapi.operations import if_none_match, reading
from lastword.serve.openapi.schemas import Node

_TAGGED: Node = {
    "etag": {
        "description": "Changes with the content; weak where the answer is compressed.",
        "required": True,
        "schema": {"type": "string", "pattern": '^(W/)?"[0-9a-f]{16}"$'},
    },
    "content-security-policy": {"required": True, "schema": {"type": "string"}},
}


def console_paths(files: Mapping[str, PageFile]) -> Node:
    named = {"name": "file", "in": "path", "required": True, "schema": {"enum": [*files]}, "example": FIRST}
    kinds = sorted({file.media_type.partition(";")[0] for file in files.values()})
    return {
        "/": _sent("console", "The console, for a browser", ["text/html"]),
        "/console/{file}": _sent("console_file", "A file of the console's page", kinds, named),
    }


def _sent(name: str, summary: str, kinds: list[str], *parameters: Node) -> Node:
    content = {kind: {"schema": {"type": "string"}} for kind in kinds}
    made = reading(
        name,
        summary,
        {"description": "As it is.", "content": content, "headers": _TAGGED},
        parameters=[*parameters, if_none_match("the file")],
        codes=("bad_path", "no_such_route") if parameters else (),
        is_open=True,
    )
    for each in made.values():
        each["responses"]["304"] = {"description": "The file is the one that If-None-Match names.", "headers": _TAGGED}
    return made
