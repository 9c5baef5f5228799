"""The table of error codes: what is refused has a row in it, and every row is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastword.serve.http.answers import Refused
from lastword.serve.http.error_codes import ERROR_CODES

PACKAGE = Path(__file__).parents[2] / "src" / "lastword"


def codes_in_sources() -> Iterator[str]:
    """The first argument of every `Refused(...)`: a code that is written out."""
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text()
        if "Refused" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refused":
                code = node.args[0]
                assert isinstance(code, ast.Constant), ast.unparse(node)
                yield str(code.value)


def test_the_codes_in_use_are_those_of_the_table() -> None:
    assert {*codes_in_sources()} == {*ERROR_CODES}


def test_a_refusal_takes_its_status_and_its_usual_hint_from_the_table() -> None:
    refused = Refused("no_such_table", "no table of this name is served")
    assert (refused.status, refused.hint) == (404, "the tables are listed at /tables")
    assert Refused("no_such_table", "none", "another hint").hint == "another hint"


def test_a_code_that_is_not_in_the_table_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Refused("no_such_code", "")


@pytest.mark.parametrize("code", ERROR_CODES)
def test_a_row_has_an_error_status_and_a_sentence(code: str) -> None:
    row = ERROR_CODES[code]
    assert 400 <= row.status < 600
    assert row.meaning[0].isupper()
    assert row.meaning.endswith(".")
