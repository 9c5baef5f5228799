"""What a start asks for, and the cluster that it describes: how many brokers, on which ports, with which settings.

What a start does not ask for is the same as at the last start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from lastword.core.errors import BadInput
from lastword.kafka.broker.cluster_files import BrokerSpec, ClusterSpec, new_cluster_id, node_files
from lastword.kafka.broker.security import Security
from lastword.processes.ports import PortPicker, is_ending, is_free
from lastword.processes.process_lock import is_running

DEFAULT_PORT = 9092
_MOST_BROKERS = 9
_SECURITY_WORDS = {
    "open": "open to everyone on this machine",
    "scram": "with --secure",
    "scram-tls": "with --secure --tls",
}


@dataclass(frozen=True, kw_only=True)
class StartRequest:
    """What a start asks for; None keeps the value of the last start. Port 0 asks for free ports."""

    brokers: int | None = None
    port: int | None = None
    settings: Mapping[str, str] | None = None
    security: Security | None = None


def requested_spec(name: str, folder: Path, known: ClusterSpec | None, request: StartRequest) -> ClusterSpec:
    """The requested cluster; BadInput if it is impossible, or changes a fixed value. `known` is that of the last start.

    `folder` is the folder of the cluster, where running brokers hold their locks.
    """
    brokers, port = request.brokers, request.port
    if brokers is not None and not 1 <= brokers <= _MOST_BROKERS:
        raise BadInput(f"--brokers {brokers}: give 1 to {_MOST_BROKERS}")
    if known is None:
        return ClusterSpec(
            name=name,
            cluster_id=new_cluster_id(),
            brokers=_broker_specs(brokers or 1, DEFAULT_PORT if port is None else port),
            settings=_settings({}, request.settings),
            security=request.security or "open",
        )
    _refuse_another_cluster(name, known, request)
    if port is not None and _must_move(folder, known, port):
        known = replace(known, brokers=_broker_specs(len(known.brokers), port))
    return replace(known, settings=_settings(known.settings, request.settings))


def with_free_controller_ports(spec: ClusterSpec) -> ClusterSpec:
    """The same cluster; if a controller port was taken while all brokers were stopped, with other controller ports."""
    if all(is_free(broker.controller_port) for broker in spec.brokers):
        return spec
    with PortPicker(but_not=[broker.port for broker in spec.brokers]) as ports:
        return replace(spec, brokers=tuple(replace(b, controller_port=ports.free()) for b in spec.brokers))


def _refuse_another_cluster(name: str, known: ClusterSpec, request: StartRequest) -> None:
    if request.brokers not in (None, len(known.brokers)):
        raise BadInput(
            f"cluster {name} was made with {len(known.brokers)} broker(s), which can't change: "
            "make another with  --cluster NAME"
        )
    if request.security not in (None, known.security):
        raise BadInput(
            f"cluster {name} was made {_SECURITY_WORDS[known.security]}, which can't change: make another "
            "in another home (export LASTWORD_HOME=~/another), or, for broker start, with  --cluster NAME"
        )


def _must_move(folder: Path, known: ClusterSpec, port: int) -> bool:
    """Whether the request needs other ports than the cluster has."""
    if port == 0:
        return not all(is_running(node_files(folder, b)) or is_free(b.port) or is_ending(b.port) for b in known.brokers)
    return port != known.brokers[0].port


def _settings(known: Mapping[str, str], requested: Mapping[str, str] | None) -> dict[str, str]:
    """The settings so far with the requested ones; an empty value gives a setting back to its default."""
    return {name: value for name, value in {**known, **(requested or {})}.items() if value != ""}


def _broker_specs(count: int, first_port: int) -> tuple[BrokerSpec, ...]:
    chosen = range(first_port, first_port + count) if first_port else ()
    if not all(1 <= port <= 65535 for port in chosen):
        raise BadInput(f"--port {first_port}: for {count} broker(s) give 1 to {65536 - count}, or 0 for free ports")
    with PortPicker(but_not=chosen) as ports:
        return tuple(
            BrokerSpec(node_id=i + 1, port=chosen[i] if chosen else ports.free(), controller_port=ports.free())
            for i in range(count)
        )
