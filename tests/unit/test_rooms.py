"""The rooms of the package: the table in DESIGN.md, the contracts, and what each folder says of itself."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "lastword"
BENCHMARKS = ROOT / "benchmarks"
FOLDERS = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
BENCHMARK_FOLDERS = sorted(path.parent for path in BENCHMARKS.rglob("__init__.py"))
# About as many files as a newcomer takes in at one look.
MOST_MODULES = 16


def contracts() -> dict[str, set[str]]:
    """Room -> what it may use, as import-linter checks it."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return {
        contract["name"]: {used.removeprefix("lastword.") for used in contract["may_use"]}
        for contract in options["contracts"]
    }


def test_the_table_of_rooms_is_what_is_checked() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| .* \| ([^|]*) \|$", (ROOT / "DESIGN.md").read_text(), re.MULTILINE)
    table = {room: set(used.split(", ")) - {"the standard library"} for room, used in rows}
    assert table == contracts()


def test_every_folder_with_modules_is_a_room() -> None:
    rooms = {
        ".".join(folder.relative_to(PACKAGE).parts) for folder in FOLDERS if len(list(folder.glob("*.py"))) > 1
    } - {""}
    assert rooms <= set(contracts())


@pytest.mark.parametrize("folder", [*FOLDERS[1:], *BENCHMARK_FOLDERS], ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_room_says_what_it_is_for_and_names_its_modules(folder: Path) -> None:
    purpose = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert len(purpose.splitlines()[0]) > 20
    assert len(modules) <= MOST_MODULES
    assert sorted(module for module in modules if f"`{module}`" not in purpose) == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("lastword", cache_dir=None)
    # The package itself loads its names when they are asked for.
    imports = {each: graph.find_modules_directly_imported_by(each) - {"lastword"} for each in graph.modules}
    assert len(imports) > 200
    # A module that imports nothing of what is left, or that nothing of what is left imports, is in no cycle.
    while True:
        imported = set().union(*imports.values())
        left = {each: found for each, found in imports.items() if found & imports.keys() and each in imported}
        if left == imports:
            break
        imports = left
    assert sorted(imports) == []


@pytest.mark.parametrize("package", [PACKAGE, BENCHMARKS], ids=lambda package: package.name)
def test_a_class_name_stands_once_in_a_package(package: Path) -> None:
    names = [
        node.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(name for name, count in Counter(names).items() if count > 1) == []


def test_the_package_imports_no_benchmark() -> None:
    graph = grimp.build_graph("lastword", include_external_packages=True, cache_dir=None)
    assert "msgspec" in graph.modules
    assert "benchmarks" not in graph.modules
