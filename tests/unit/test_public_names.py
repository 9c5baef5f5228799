"""The public names: `examples/`, README.md and docs/ import and use no others of lastword."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import lastword
import lastword.spark

ROOT = Path(__file__).parents[2]
PUBLIC = {f"{module.__name__}.{name}" for module in (lastword, lastword.spark) for name in module.__all__}
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAMS = {path.name: path.read_text() for path in sorted((ROOT / "examples").glob("*.py"))} | {
    f"{page.name}, Python block {number}": block
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for number, block in enumerate(_BLOCK.findall(page.read_text()), 1)
}


def names_of_lastword(code: str) -> set[str]:
    """The dotted names of lastword that the code imports, or uses as attributes of the imported package."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name != "lastword"}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"{node.value.id}.{node.attr}")
    return {name for name in names if name.split(".")[0] == "lastword"}


@pytest.mark.parametrize(
    "code",
    [
        "from lastword.core.errors import FellBehind",
        "import lastword.replica.watching",
        "import lastword\nlastword.core",
        "def late():\n    from lastword import api",
    ],
)
def test_a_name_that_is_not_public_is_noticed(code: str) -> None:
    assert names_of_lastword(code) - PUBLIC


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_docs_uses_public_names_alone(program: str) -> None:
    assert names_of_lastword(PROGRAMS[program]) - PUBLIC == set()


def test_programs_of_all_kinds_are_looked_at() -> None:
    assert {"follow.py", "README.md, Python block 1", "spark.md, Python block 1"} <= {*PROGRAMS}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_has_a_row_on_the_python_page(name: str) -> None:
    assert f"\n| `{name}" in (ROOT / "docs" / "python.md").read_text()
