"""The files that a forge and pre-commit read: they parse, and what they name exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
YAML_FILES = [ROOT / ".pre-commit-config.yaml", *sorted((ROOT / ".github").rglob("*.yml"))]


def parsed(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: path.name)
def test_a_yaml_file_holds_a_mapping(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_hooks_are_local_and_run_what_make_check_runs() -> None:
    repos = parsed(".pre-commit-config.yaml")["repos"]
    assert [repo["repo"] for repo in repos] == ["local"]
    for hook in repos[0]["hooks"]:
        assert hook["language"] == "system"
        tool = hook["entry"].split()[0].removeprefix(".venv/bin/")
        assert f"$(BIN)/{tool}" in MAKEFILE


def test_the_workflow_runs_on_every_supported_python_by_targets_of_the_makefile() -> None:
    jobs = parsed(".github/workflows/check.yml")["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = [name.split()[-1] for name in project["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert jobs["check"]["strategy"]["matrix"]["python"] == supported
    assert jobs["test"]["strategy"]["matrix"]["python"] == supported
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert {"make check", "make test", "make site", "make package"} <= {*commands}
    for command in commands:
        assert re.search(rf"^{command.removeprefix('make ')}:", MAKEFILE, re.MULTILINE), command


@pytest.mark.parametrize("name", ["bug.yml", "wish.yml"])
def test_an_issue_form_has_what_the_forge_demands(name: str) -> None:
    form = parsed(f".github/ISSUE_TEMPLATE/{name}")
    assert form["name"]
    assert form["description"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len({*ids})
    assert all(field["type"] == "textarea" and field["attributes"]["label"] for field in form["body"])


def test_the_targets_that_the_pull_request_template_names_exist() -> None:
    template = (ROOT / ".github" / "pull_request_template.md").read_text()
    targets = re.findall(r"`make (\w+)`", template)
    assert targets
    assert [target for target in targets if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)] == []
