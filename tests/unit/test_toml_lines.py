"""Lines of the keys of a TOML text."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastword.pipeline.plan.toml_lines import KeyPath, places_in

PIPELINES = sorted((Path(__file__).parents[2] / "pipelines").glob("*.toml"))
ODD = """\
# [[rules]] in a comment
a.b = 1  # and = here
a."c.d" = 1979-05-27 07:32:00
"quo\\"ted" = '''
[[rules]]
name = "not a key" '''''
empty = \"\"
list = [ [1, 2], # ]
  [ "],", '{' ],
  { deep = { deeper = [{x = 1}, {}] } , y = '''}''' },
]
basic = \"\"\"one \\
   two \\\"\"\" three\"\"\"\"\"

[ table . "of" . 'things' ]
x = +1.5e3

[[rules]]
name = "first"
value = { customer = "email", team = "rule" }
[rules.more]
y = true
[[rules]]
[[rules.parts]]
z = 0x1F
[[rules.parts]]
[rules.parts.inner]
z = inf
"""


def keys(said: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every path of a document as tomllib reads it."""
    inner = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else []
    for key, value in inner:
        yield (*path, key)
        yield from keys(value, (*path, key))


@pytest.mark.parametrize("text", [ODD, *[path.read_text() for path in PIPELINES]], ids=["odd", "orders", "teams"])
def test_every_key_that_tomllib_finds_has_a_place_and_no_other(text: str) -> None:
    assert set(places_in(text).known) == set(keys(tomllib.loads(text)))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a", "b"), 2),
        (("a", "c.d"), 3),
        (('quo"ted',), 4),
        (("list",), 8),
        (("list", 1), 9),
        (("list", 2, "deep", "deeper", 0, "x"), 10),
        (("basic",), 12),
        (("table", "of", "things"), 15),
        (("table", "of", "things", "x"), 16),
        (("rules", 0), 18),
        (("rules", 0, "value", "team"), 20),
        (("rules", 0, "more", "y"), 22),
        (("rules", 1), 23),
        (("rules", 1, "parts", 0, "z"), 25),
        (("rules", 1, "parts", 1, "inner"), 27),
    ],
    ids=str,
)
def test_a_key_is_found_wherever_it_stands(path: KeyPath, line: int) -> None:
    assert places_in(ODD).line(*path) == line


def test_a_key_that_is_missing_is_where_it_is_missing_from() -> None:
    places = places_in(ODD)
    assert places.line("rules", 1, "name") == 23
    assert places.line("rules", 0, "value", "type") == 20
    assert places.line("app") == 1


def test_a_line_within_a_text_counts_from_where_the_text_begins() -> None:
    text = 'one = """\na INT,\nb INT\n"""\ntwo = """a INT,\nb INT"""\nthree = "a\\nb"\n'
    places = places_in(text)
    assert [places.line_within("one", after=lines) for lines in (0, 1)] == [2, 3]
    assert [places.line_within("two", after=lines) for lines in (0, 1)] == [5, 6]
    # The second line of its text is no line of the file.
    assert places.line_within("three", after=1) == 7
    assert places.line_within("four", after=1) == 1
