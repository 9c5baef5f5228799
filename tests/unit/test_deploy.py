"""What the files of deploy/ say about lastword is so: options, ports, probes, variables, users, volumes, versions."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import lastword
from lastword.core.errors import BadInput
from lastword.jvm.jars import broker_jar_lock
from lastword.serve.http.routes import Access
from lastword.serve.route_table import ROUTES
from support.deploy_files import (
    DEPLOY,
    compose,
    containerfile,
    environments,
    instruction,
    kubernetes,
    parsed,
    pod,
    serve_commands,
    unit,
    volumes,
)
from support.locked_requirements import LOCK, project_requirements, versions

ROOT = DEPLOY.parent
FILES = ("lastword.service", "Containerfile", "compose.yaml", "kubernetes.yaml")


def open_paths() -> set[str]:
    """The paths that a probe may ask without a token."""
    return {route.path for route in ROUTES if route.method == "GET" and route.access is Access.OPEN}


def health_check() -> str:
    """The address that the health check of compose.yaml asks."""
    [url] = re.findall(r"http://[^']+", compose()["services"]["serve"]["healthcheck"]["test"][-1])
    return str(url)


@pytest.mark.parametrize("file", FILES)
def test_a_command_has_only_options_of_lastword(file: str) -> None:
    words = serve_commands()[file]
    assert words[0] == "serve"
    assert parsed(words).table == ["users=user-profiles"]


def test_an_option_that_lastword_does_not_have_is_noticed() -> None:
    with pytest.raises(BadInput):
        parsed([*serve_commands()["compose.yaml"], "--tokens=x"])


@pytest.mark.parametrize("file", FILES)
def test_a_variable_is_on_the_page_of_the_settings(file: str) -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    assert [name for name in environments()[file] if name != "PATH" and f"| `{name}` |" not in page] == []


@pytest.mark.parametrize("file", FILES)
def test_the_data_and_the_home_are_on_a_volume(file: str) -> None:
    home = environments()[file].get("LASTWORD_HOME") or environments()["Containerfile"]["LASTWORD_HOME"]
    for folder in (Path(parsed(serve_commands()[file]).data), Path(home)):
        assert any(folder.is_relative_to(volume) for volume in volumes()[file]), folder


@pytest.mark.parametrize("file", FILES)
def test_a_server_that_others_reach_has_tokens(file: str) -> None:
    options = parsed(serve_commands()[file])
    assert (options.host == "127.0.0.1") == (options.token_file is None)


def test_all_ports_are_that_of_the_server() -> None:
    ports = {
        *(parsed(words).port for words in serve_commands().values()),
        int(instruction("EXPOSE")),
        int(compose()["services"]["serve"]["ports"][0].split(":")[-1]),
        urlsplit(health_check()).port,
        pod()["containers"][0]["ports"][0]["containerPort"],
        kubernetes("Service")["spec"]["ports"][0]["port"],
    }
    assert ports == {8090}


def test_probes_ask_routes_that_exist_and_need_no_token() -> None:
    [container] = pod()["containers"]
    asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness", "startup")}
    assert {probe["port"] for probe in asked.values()} == {container["ports"][0]["name"]}
    # A table that can't reach its cluster is not ready, and a restart would not help it.
    assert (asked["liveness"]["path"], asked["readiness"]["path"]) == ("/health", "/ready")
    assert {asked["startup"]["path"], urlsplit(health_check()).path} <= {"/health", "/ready"} <= open_paths()


def test_the_pods_of_the_service_are_those_of_the_set() -> None:
    labels = kubernetes("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert kubernetes("Service")["spec"]["selector"] == labels
    assert kubernetes("StatefulSet")["spec"]["selector"]["matchLabels"] == labels
    mounted = {
        mount["name"] for each in (*pod()["initContainers"], *pod()["containers"]) for mount in each["volumeMounts"]
    }
    claimed = {claim["metadata"]["name"] for claim in kubernetes("StatefulSet")["spec"]["volumeClaimTemplates"]}
    assert mounted == {volume["name"] for volume in pod()["volumes"]} | claimed


def test_nobody_runs_as_root() -> None:
    user, group = instruction("USER").split(":")
    assert int(user) > 0
    [adding] = [text for name, text in containerfile() if name == "RUN" and "useradd" in text]
    assert f"--uid {user} " in adding
    security = pod()["securityContext"]
    assert (security["runAsNonRoot"], security["runAsUser"], security["fsGroup"]) == (True, int(user), int(group))
    assert all("user" not in service for service in compose()["services"].values())
    assert unit()["Service"]["User"] not in ("", "root")


def test_every_server_has_the_same_time_to_stop() -> None:
    assert compose()["services"]["serve"]["stop_grace_period"] == "30s"
    assert (unit()["Service"]["TimeoutStopSec"], pod()["terminationGracePeriodSeconds"]) == ("30", 30)


def test_images_have_the_versions_of_lastword_and_of_the_kafka_it_is_tested_with() -> None:
    [kafka] = {jar.version for jar in broker_jar_lock().jars if jar.artifact == "kafka-clients"}
    services = compose()["services"]
    images = {service["image"] for service in services.values()} | {
        each["image"] for each in (*pod()["initContainers"], *pod()["containers"])
    }
    assert images == {f"apache/kafka:{kafka}", f"lastword:{lastword.__version__}"}
    assert f"lastword:{lastword.__version__} " in (DEPLOY / "Containerfile").read_text()


def test_the_image_gets_the_locked_requirements_of_lastword_and_no_others() -> None:
    own, all_of_them = versions(DEPLOY / "requirements.lock"), versions(LOCK)
    assert {*own} == project_requirements()
    assert own == {name: all_of_them[name] for name in own}, "run  make lock"
    text = (DEPLOY / "requirements.lock").read_text()
    assert text.count("--hash=") > len(own)
    assert "://" not in text


def test_what_the_containerfile_copies_is_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    taken = [line[1:] for line in lines if line.startswith("!")]
    assert "*" in lines
    copied = [
        line.split()[1:-1] for line in (DEPLOY / "Containerfile").read_text().splitlines() if line.startswith("COPY d")
    ]
    assert copied == [["deploy/requirements.lock", "dist/lastword-*.whl"]]
    assert sorted(taken) == sorted(copied[0])
    assert fnmatch(f"dist/lastword-{lastword.__version__}-py3-none-any.whl", taken[-1])
