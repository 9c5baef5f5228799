"""The contract between rooms that import-linter checks: a room uses what its row of the table allows, and nothing else.

A room is a package of `lastword`. A package inside it with its own contract is another room.
Why not import-linter's own contracts: docs/decisions/0018-rooms-inside-rooms.md.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class MayUse(Contract):
    """`room` imports only the rooms and the third-party packages of `may_use`, and itself."""

    type_name = "may_use"

    room = fields.StringField()
    may_use = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002
        rooms = _rooms()
        room = str(self.room)
        uses: Any = self.may_use or ()  # import-linter replaces the field by the parsed list
        allowed = {room, *uses}
        wrong = [
            f"{importer}:{detail['line_number']} imports {imported}"
            for importer in sorted(_modules(graph, room, rooms))
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if (used := _room_of(imported, rooms)) is not None and used not in allowed
            for detail in graph.get_import_details(importer=importer, imported=imported)[:1]
        ]
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["wrong"]:
            output.print_error(line)


def _rooms() -> list[str]:
    """Every room that has a contract, inner rooms first."""
    with Path("pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    named = [contract["room"] for contract in contracts if contract["type"] == MayUse.type_name]
    return sorted(named, key=len, reverse=True)


def _modules(graph: ImportGraph, room: str, rooms: list[str]) -> set[str]:
    return {each for each in graph.modules if _room_of(each, rooms) == room}


def _room_of(module: str, rooms: list[str]) -> str | None:
    """The room of a module, or the package that is not ours; None for the standard library."""
    for room in rooms:
        if module == room or module.startswith(f"{room}."):
            return room
    package = module.partition(".")[0]
    return None if package in sys.stdlib_module_names or package == "__future__" else package
