"""The files of deploy/, each judged by the linter or the schema of its kind, without a container engine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.deploy_files import DEPLOY
from support.installed_package import ROOT
from support.system_packages import program

pytestmark = pytest.mark.long
_TOOLS = ROOT / ".venv-package" / "bin"


def judged(*words: str | Path) -> str:
    """What a linter of .venv-package says; empty if it finds nothing."""
    assert _TOOLS.exists(), "there is no .venv-package: run  make package"
    done = subprocess.run([str(_TOOLS / words[0]), *map(str, words[1:])], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr or f"exit code {done.returncode}"


def containerfile(path: Path) -> str:
    return judged("hadolint", path)


def compose(path: Path) -> str:
    return judged("check-jsonschema", "--builtin-schema", "vendor.compose-spec", path)


def kubernetes(path: Path) -> str:
    """By the newest version that the schemas know, and by an older one."""
    return "".join(judged("kubernetes-validate", "--strict", "-k", version, path) for version in ("1.34.0", "1.37.0"))


@pytest.mark.parametrize(
    ("file", "judge", "mistake"),
    [
        ("Containerfile", containerfile, ("python:3.13-slim AS", "python AS")),
        ("compose.yaml", compose, ("depends_on:", "depend_on:")),
        ("kubernetes.yaml", kubernetes, ("terminationGracePeriodSeconds", "terminationGracePeriod")),
    ],
)
def test_a_file_has_no_mistake_and_a_mistake_is_noticed(
    file: str, judge: Callable[[Path], str], mistake: tuple[str, str], tmp_path: Path
) -> None:
    assert judge(DEPLOY / file) == ""
    broken = tmp_path / file
    broken.write_text((DEPLOY / file).read_text().replace(*mistake))
    assert judge(broken) != ""


@pytest.mark.parametrize(
    ("files", "schema"),
    [
        (".github/workflows/*.yml", "vendor.github-workflows"),
        (".github/ISSUE_TEMPLATE/[!c]*.yml", "vendor.github-issue-forms"),
    ],
)
def test_a_file_of_the_forge_has_no_mistake(files: str, schema: str) -> None:
    found = sorted(ROOT.glob(files))
    assert found
    assert judged("check-jsonschema", "--builtin-schema", schema, *found) == ""


def test_systemd_accepts_the_unit_and_objects_to_a_mistake(base_folder: Path, tmp_path: Path) -> None:
    program("systemd-analyze", "systemd")
    # It looks for the program: here is one.
    unit = (DEPLOY / "lastword.service").read_text().replace("/opt/lastword/", f"{base_folder}/")

    def said(text: str) -> str:
        path = tmp_path / "lastword.service"
        path.write_text(text)
        command = ["systemd-analyze", "verify", "--man=no", str(path)]
        done = subprocess.run(command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True)
        return "".join(line for line in done.stderr.splitlines(keepends=True) if "lastword.service" in line)

    assert str(base_folder) in unit
    assert said(unit) == ""
    assert "RestartSecs" in said(unit.replace("RestartSec=", "RestartSecs="))
