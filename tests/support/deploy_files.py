"""What the files of deploy/ run: the words of each command, its environment and its volumes, read without an engine."""

from __future__ import annotations

import argparse
import configparser
import json
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from lastword.cli import VERBS

DEPLOY = Path(__file__).parents[2] / "deploy"


def unit() -> configparser.ConfigParser:
    """The systemd unit."""
    made = configparser.ConfigParser(interpolation=None, strict=False)
    made.optionxform = str  # type: ignore[assignment,method-assign]
    made.read_string(_joined(DEPLOY / "lastword.service"))
    return made


def containerfile() -> list[tuple[str, str]]:
    """The instructions of the last stage and their arguments."""
    lines = [line for line in _joined(DEPLOY / "Containerfile").splitlines() if line and not line.startswith("#")]
    found = [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]
    last = max(number for number, (name, _) in enumerate(found) if name == "FROM")
    return found[last:]


def instruction(name: str) -> str:
    """The argument of an instruction that the last stage has once."""
    [argument] = [text for each, text in containerfile() if each == name]
    return argument


def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def kubernetes(kind: str) -> Any:
    """The object of this kind."""
    objects = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    return next(each for each in objects if each["kind"] == kind)


def pod() -> Any:
    return kubernetes("StatefulSet")["spec"]["template"]["spec"]


def serve_commands() -> dict[str, list[str]]:
    """By file, the words after `lastword`."""
    return {
        "lastword.service": shlex.split(unit()["Service"]["ExecStart"])[1:],
        "Containerfile": [*json.loads(instruction("ENTRYPOINT"))[1:], *json.loads(instruction("CMD"))],
        "compose.yaml": compose()["services"]["serve"]["command"],
        "kubernetes.yaml": pod()["containers"][0]["args"],
    }


def parsed(words: list[str]) -> argparse.Namespace:
    """The options, read by the parser of the verb; BadInput for one that does not exist."""
    parser: argparse.ArgumentParser = import_module(f"lastword.cli.{VERBS[words[0]][0]}").parser(words[0])
    return parser.parse_args(words[1:])


def environments() -> dict[str, dict[str, str]]:
    """By file, the variables that lastword gets."""
    image = dict(pair.split("=", 1) for pair in instruction("ENV").split())
    services = compose()["services"]
    return {
        "lastword.service": dict([unit()["Service"]["Environment"].split("=", 1)]),
        "Containerfile": image,
        "compose.yaml": {**services["prepare"]["environment"], **services["serve"]["environment"]},
        "kubernetes.yaml": {each["name"]: each["value"] for each in pod()["containers"][0]["env"]},
    }


def volumes() -> dict[str, list[Path]]:
    """By file, the folders that outlive the process, where it sees them."""
    claims = {claim["metadata"]["name"] for claim in kubernetes("StatefulSet")["spec"]["volumeClaimTemplates"]}
    mounts = pod()["containers"][0]["volumeMounts"]
    named = [volume.split(":") for volume in compose()["services"]["serve"]["volumes"]]
    return {
        "lastword.service": [Path("/var/lib") / unit()["Service"]["StateDirectory"]],
        "Containerfile": [Path(instruction("VOLUME"))],
        "compose.yaml": [Path(folder) for name, folder in named if name in compose()["volumes"]],
        "kubernetes.yaml": [Path(mount["mountPath"]) for mount in mounts if mount["name"] in claims],
    }


def _joined(path: Path) -> str:
    """The text, with each continued line as one."""
    return re.sub(r"\\\n\s*", "", path.read_text())
