"""The verb `status`: the state of every part."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lastword.cli import cluster_choice
from lastword.cli.json_lines import LastExit, PartLine
from lastword.cli.local import this_machine
from lastword.cli.output import print_json, print_table
from lastword.cli.progress_line import ProgressLine
from lastword.cli.readable import when
from lastword.core.errors import ClusterUnreachable
from lastword.up.desired_state import TOKENS

if TYPE_CHECKING:
    from lastword.kafka.broker.local_cluster import LocalCluster
    from lastword.up.control import PartStatus, Upkeep
    from lastword.up.part_health import Health


def status(args: argparse.Namespace) -> int:
    cluster, upkeep = (
        this_machine.local_cluster(cluster_choice.DEFAULT_CLUSTER, print),
        this_machine.upkeep(ProgressLine()),
    )
    rows = [*_brokers(cluster, upkeep), *_parts(upkeep)]
    if args.json:
        for row in rows:
            print_json(row)
    elif rows:
        _print_rows(rows)
        tokens, passwords = upkeep.folder / TOKENS, cluster.client_file
        if passwords is not None and tokens.exists():
            print(locked_line(tokens, passwords))
    if not any(row.pid for row in rows if row.part == "broker"):
        raise ClusterUnreachable(cluster_choice.NO_LOCAL_CLUSTER)
    return 0 if all(row.pid for row in rows) else 1


def locked_line(tokens: Path, passwords: Path | None) -> str:
    return f"It is locked: HTTP wants a token of {tokens}, Kafka a password of {passwords}"


def _brokers(cluster: LocalCluster, upkeep: Upkeep) -> list[PartLine]:
    from lastword.kafka.broker.cluster_files import NodeFiles
    from lastword.processes.process_lock import started_ms
    from lastword.up.supervisor import CLUSTER

    health = upkeep.part(CLUSTER).health
    return [
        PartLine(
            part="broker",
            id=broker.node_id,
            state="running" if broker.pid else "stopped",
            address=f"127.0.0.1:{broker.port}",
            pid=broker.pid,
            since=None if broker.pid is None else started_ms(NodeFiles(folder=broker.log.parent)),
            restarts=health.restarts,
            last_exit=_last_exit(health),
            log=str(broker.log),
        )
        for broker in cluster.status()
    ]


def _parts(upkeep: Upkeep) -> list[PartLine]:
    from lastword.teams.parts import SERVE, Choices

    parts = upkeep.status()
    address = {SERVE: Choices(**upkeep.wanted.choices).url} if parts else {}
    return [_part(part, address.get(part.name)) for part in parts]


def _part(part: PartStatus, address: str | None) -> PartLine:
    return PartLine(
        part=part.name,
        state=part.state,
        address=address,
        pid=part.pid,
        since=part.since_ms,
        restarts=part.health.restarts,
        last_exit=_last_exit(part.health),
        log=str(part.log),
    )


def _last_exit(health: Health) -> LastExit | None:
    end = health.last_exit
    return None if end is None else LastExit(end.at_ms, end.code, end.said, str(end))


def _print_rows(rows: list[PartLine]) -> None:
    print_table(
        ["PART", "ID", "STATE", "ADDRESS", "PID", "SINCE (UTC)", "RESTARTS", "LOG"],
        [
            [
                row.part,
                row.id or "-",
                row.state,
                row.address or "-",
                row.pid or "-",
                "-" if row.since is None else when(row.since)[:-4],
                row.restarts,
                row.log,
            ]
            for row in rows
        ],
    )
    for row in rows:
        if end := row.last_exit:
            print(f"{row.part} {end.told}, at {when(end.at)[:-4]}")
