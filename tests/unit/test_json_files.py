from __future__ import annotations

from pathlib import Path

import pytest

from lastword.core.errors import BrokerFailed, LastwordError
from lastword.core.shapes.json_text import from_json_text, json_text
from lastword.kafka.broker.cluster_files import BrokerSpec, ClusterSpec, load_spec, save_spec
from lastword.kafka.broker.security import Secrets, load_secrets
from lastword.pipeline.running.progress import PartitionProgress
from lastword.up.desired_state import DesiredState, Part, load_desired_state, save_desired_state
from lastword.up.part_health import Exit, Health, load_health, save_health

SPEC = '{"name": "dev", "cluster_id": "x", "brokers": [{"node_id": 1, "port": 2, "controller_port": 3}]'
# What a crash, a full disk or another program may leave in a file.
FOREIGN = (b"", b"{", b"[]", b"null", b"7", b"{}", b"\xff\x00", b"[" * 100_000)


def test_a_description_has_the_bytes_that_every_version_writes_and_one_without_the_newer_fields_is_read(
    tmp_path: Path,
) -> None:
    spec = ClusterSpec(
        name="dev", cluster_id="x", brokers=(BrokerSpec(node_id=1, port=2, controller_port=3),), settings={"a": "é"}
    )
    save_spec(tmp_path, spec)
    assert (tmp_path / "cluster.json").read_text() == (
        '{\n  "name": "dev",\n  "cluster_id": "x",\n  "brokers": [\n    {\n      "node_id": 1,\n      "port": 2,\n'
        '      "controller_port": 3\n    }\n  ],\n  "settings": {\n    "a": "\\u00e9"\n  },\n  "security": "open"\n}'
    )
    (tmp_path / "cluster.json").write_text(SPEC + "}")
    assert load_spec(tmp_path) == ClusterSpec(name="dev", cluster_id="x", brokers=spec.brokers)


@pytest.mark.parametrize(
    "text",
    [
        *FOREIGN,
        b'{"name": "dev", "cluster_id": "x"}',
        b'{"name": "dev", "cluster_id": "x", "brokers": []}',
        b'{"name": "dev", "cluster_id": "x", "brokers": [{"node_id": 1, "port": "2", "controller_port": 3}]}',
        f'{SPEC}, "security": "wide"}}'.encode(),
        f'{SPEC}, "odd": 1}}'.encode(),
    ],
)
def test_a_damaged_description_is_named_in_one_line(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "cluster.json").write_bytes(text)
    with pytest.raises(BrokerFailed, match=r"^\S+/cluster\.json can't be read \(.+\): restore it.*$"):
        load_spec(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        *FOREIGN,
        b'{"admin": "secret-1"}',
        b'{"admin": "secret-1", "controller": 7, "keys": "c"}',
        b'{"admin": "secret-1", "controller": "b", "keys": "c", "odd": "secret-1"}',
    ],
)
def test_damaged_passwords_are_named_and_not_shown(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "secrets.json").write_bytes(text)
    with pytest.raises(BrokerFailed, match=r"secrets\.json can't be read") as raised:
        load_secrets(tmp_path)
    assert "secret-1" not in str(raised.value)


def test_passwords_are_not_in_a_repr() -> None:
    passwords = Secrets(admin="secret-1", controller="secret-1", keys="secret-1")
    assert "secret-1" not in f"{passwords!r} {passwords}"
    assert list(passwords.__rich_repr__()) == []


def test_what_is_wanted_keeps_a_path_that_is_not_utf_8(tmp_path: Path) -> None:
    wanted = DesiredState(
        parts=(Part(name="a", command=("run", "/caf\udce9")),), start_cluster=(), choices={"rate": 5, "url": None}
    )
    save_desired_state(tmp_path, wanted)
    assert load_desired_state(tmp_path) == wanted


@pytest.mark.parametrize(
    "text",
    [
        *FOREIGN,
        b'{"start_cluster": []}',
        b'{"parts": []}',
        b'{"parts": [{"name": "a"}], "start_cluster": []}',
        b'{"parts": [], "start_cluster": [], "is_wanted": "yes"}',
        b'{"parts": [], "start_cluster": [], "odd": 1}',
    ],
)
def test_what_is_wanted_in_another_shape_is_damage(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "wanted.json").write_bytes(text)
    with pytest.raises(LastwordError, match=r"wanted\.json can't be read \(.*remove it"):
        load_desired_state(tmp_path)


def test_the_health_of_a_part_is_read_as_it_was_saved_and_damage_counts_as_never_ended(tmp_path: Path) -> None:
    path = tmp_path / "health.json"
    health = Health(restarts=2, next_start_ms=5, log_from=7, last_exit=Exit(at_ms=1, code=-9, said="out of memory"))
    save_health(path, health)
    assert path.read_text() == (
        '{"restarts": 2, "next_start_ms": 5, "log_from": 7, '
        '"last_exit": {"at_ms": 1, "code": -9, "said": "out of memory"}}'
    )
    assert load_health(path) == health
    end = '"last_exit": {"at_ms": 1, "code": 1, "said": ""}'
    damaged = ("", "{", "[]", "null", '{"restarts": 2}', f'{{"restarts": "two", {end}}}', f'{{"odd": 1, {end}}}')
    for text in (*(each.encode() for each in damaged), b"\xff", b"[" * 100_000):
        path.write_bytes(text)
        assert load_health(path) == Health(last_exit=None)


def test_a_progress_has_the_bytes_that_every_version_writes() -> None:
    progress = PartitionProgress(next_offset=7, source_id="abc", generation=3, owner="é", counters={"t": {"r": {}}})
    assert progress.to_json() == (
        b'{"format": 1, "next_offset": 7, "source_id": "abc", "generation": 3, "owner": "\\u00e9", "valid": 0, '
        b'"rejected": 0, "most_tasks": 0, "counters": {"t": {"r": {}}}}'
    )


@pytest.mark.parametrize("text", [*FOREIGN, b'{"format": 1}', b'{"format": 2}'])
def test_a_value_that_is_no_progress_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        PartitionProgress.from_json(text)


def test_a_struct_comes_back_from_its_text() -> None:
    health = Health(restarts=2**70, last_exit=None)
    assert from_json_text(json_text(health), Health) == health
