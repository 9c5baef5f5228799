"""The commands of deploy/compose.yaml on a real cluster: what a container would run, without a container."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import delete_topic
from support.deploy_files import compose, pod
from support.installed_package import InstalledCommand
from support.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.open]
_TOPIC = "user-profiles"


@pytest.fixture
def volume(elsewhere: Path, connection: Connection) -> Iterator[Path]:
    """The folder that is /var/lib/lastword in a container; the table is gone afterwards."""
    folder = elsewhere / "volume"
    folder.mkdir(mode=0o700)
    yield folder
    delete_topic(connection, _TOPIC)


def here(words: list[str], volume: Path) -> list[str]:
    """The words of a container as words for this machine: the volume is the folder, and the port a free one."""
    return [word.replace("/var/lib/lastword", str(volume)).replace("8090", "0") for word in words]


def prepare(command: InstalledCommand, volume: Path) -> None:
    """Runs the service `prepare`."""
    service = compose()["services"]["prepare"]
    words = here([*service["entrypoint"], *service["command"]], volume)
    done = subprocess.run(words, env=command.environment(), capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def served(server: subprocess.Popen[str]) -> str:
    """The address of a server that has said that it is ready."""
    assert server.stdout is not None
    said = ""
    while "ready: " not in said:
        line = server.stdout.readline()
        assert line, f"the server ended: {said}"
        said += line
    [port] = re.findall(r"http://[^ ]*:(\d+)", said.splitlines()[-1])
    return f"http://127.0.0.1:{port}"


def test_the_services_make_a_table_and_serve_it_with_tokens_that_stay(base: InstalledCommand, volume: Path) -> None:
    prepare(base, volume)
    tokens = (volume / "tokens").read_text()
    # As at the second `compose up`.
    prepare(base, volume)
    assert (volume / "tokens").read_text() == tokens

    service = compose()["services"]["serve"]
    server = base.start(*here(service["command"], volume), stdout=subprocess.PIPE)
    try:
        address = served(server)
        check = [word.replace("http://127.0.0.1:8090", address) for word in service["healthcheck"]["test"][1:]]
        eventually(lambda: subprocess.run(check, env=base.environment(), capture_output=True).returncode == 0)
        with pytest.raises(HTTPError):
            urlopen(f"{address}/tables", timeout=30)  # noqa: S310 - our own server
        [token] = re.findall(r"^write (\w+)$", tokens, re.MULTILINE)
        write = Request(f"{address}/tables/users/rows/a", b"1", {"authorization": f"Bearer {token}"}, method="PUT")  # noqa: S310
        with urlopen(write, timeout=60) as answer:  # noqa: S310
            assert answer.status == 200
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert base("get", _TOPIC, "a") == "1\n"


def test_the_tokens_of_a_secret_get_the_mode_that_the_server_asks_for(tmp_path: Path) -> None:
    # As a secret with a group is mounted.
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "tokens").write_text("read 0123456789abcdef\n")
    (tmp_path / "secret" / "tokens").chmod(0o440)
    (tmp_path / "own").mkdir()
    words = pod()["initContainers"][0]["command"]
    folders = {"/run/secret/": f"{tmp_path}/secret/", "/run/lastword/": f"{tmp_path}/own/"}
    for container, folder in folders.items():
        words = [word.replace(container, folder) for word in words]
    subprocess.run(words, check=True)
    assert os.stat(tmp_path / "own" / "tokens").st_mode & 0o077 == 0  # noqa: PTH116


def test_the_variables_for_kafka_are_settings_of_a_broker(connection: Connection) -> None:
    from lastword.kafka.client.admin_types import ConfigResource

    environment = compose()["services"]["kafka"]["environment"]
    names = {name.removeprefix("KAFKA_").replace("_", ".").lower() for name in environment}
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    with connection.admin() as admin:
        known = {*admin.describe_configs([resource])[resource].result(60)}
    assert names - known == set()
    assert "auto.create.topics" not in known
