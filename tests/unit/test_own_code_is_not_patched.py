"""No test patches lastword's own code: limits, clocks and steps are given to the code that uses them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FOLDERS = ("browser", "faults", "kafka", "site", "support", "unit", "spark")
# The patches in this file are examples.
EXAMPLES = Path(__file__)
# Fixtures that give objects of other projects.
FOREIGN_FIXTURES = {"spark"}
PATCHING = {"setattr", "delattr", "setitem", "delitem"}


def patches(code: str) -> list[str]:
    """What the code patches and is not of another project; also in the programs that it holds as text."""
    tree = ast.parse(code)
    names = dict(imported(tree))
    own = {name for name, module in names.items() if module == "lastword"}
    foreign = names.keys() - own | FOREIGN_FIXTURES
    found = [ast.unparse(target) for target in patched(tree) if not is_foreign(target, foreign)]
    found += [ast.unparse(target) for target in assigned(tree) if root_of(target) in own]
    return found + [patch for program in programs(tree) for patch in patches(program)]


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each name that an import binds, with the package that it is from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name.split(".")[0], each.name.split(".")[0]) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((each.asname or each.name, node.module.split(".")[0]) for each in node.names)


def patched(tree: ast.AST) -> Iterator[ast.expr]:
    """The first arguments of `setattr` and of its like, as functions and as methods of monkeypatch."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if name in PATCHING:
                yield node.args[0]


def assigned(tree: ast.AST) -> Iterator[ast.expr]:
    """The attributes and items that are assigned to, or deleted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield node


def programs(tree: ast.AST) -> Iterator[str]:
    """The texts that are Python with an import; a name stands for each expression of an f-string."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "_" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            text = node.value
        else:
            continue
        if "import" in text and is_python(text):
            yield text


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def is_foreign(target: ast.expr, foreign: set[str]) -> bool:
    if isinstance(target, ast.Constant):
        return str(target.value).split(".")[0] != "lastword"
    return root_of(target) in foreign


def root_of(target: ast.expr) -> str | None:
    """The name that an expression like `a.b[c].d` begins with."""
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


@pytest.mark.parametrize(
    "code",
    [
        "monkeypatch.setattr('lastword.serve.running.PORT', 1)",
        "from lastword.serve import running\nmonkeypatch.setattr(running, 'PORT', 1)",
        "import lastword.serve\nwith monkeypatch.context() as patched:\n    patched.setattr(lastword.serve, 'PORT', 1)",
        "from lastword.serve.running import PORTS\nmonkeypatch.setitem(PORTS, 'http', 1)",
        "def test(replica, monkeypatch):\n    monkeypatch.setattr(replica.store, 'apply', hanging)",
        "from lastword.replica.replica import Replica as Table\nsetattr(Table, 'close', None)",
        "from lastword.serve import running\nrunning.PORT = 1",
        "PROGRAM = 'from lastword.serve import running\\nrunning.PORT = 1\\n'",
        "PROGRAM = f'from lastword.serve import running\\nrunning.PORT = {port}\\n'",
    ],
)
def test_a_patch_of_own_code_is_noticed(code: str) -> None:
    assert len(patches(code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nmonkeypatch.setattr(sys, 'platform', 'linux')",
        "import threading\nmonkeypatch.setattr(threading.Thread, 'start', no_thread)",
        "monkeypatch.setattr('sys.platform', 'linux')",
        "monkeypatch.setattr(spark.sparkContext, '_conf', conf)",
        "monkeypatch.setenv('LASTWORD_HOME', '/tmp')",
        "from lastword.serve.running import Front\nfront = Front(port=0)\nself.front = front\nfronts['one'] = front",
    ],
)
def test_a_patch_of_foreign_code_and_an_ordinary_assignment_are_not(code: str) -> None:
    assert patches(code) == []


def test_no_test_patches_own_code() -> None:
    files = [TESTS / "conftest.py", *(path for folder in FOLDERS for path in sorted((TESTS / folder).rglob("*.py")))]
    assert len(files) > 100
    found = {path.relative_to(TESTS): patches(path.read_text()) for path in files if path != EXAMPLES}
    assert {str(path): targets for path, targets in found.items() if targets} == {}
