"""When a started cluster is ready, and why a broker died before it was."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from confluent_kafka import KafkaException

from lastword.core.errors import BrokerFailed, PortTaken
from lastword.core.nearest import did_you_mean
from lastword.kafka.broker.broker_log import cut_off, last_lines, refused_setting, without_frames
from lastword.kafka.broker.cluster_files import BrokerSpec, ClusterSpec, NodeFiles, node_files
from lastword.kafka.broker.security import admin_settings
from lastword.kafka.client.admin_types import ConfigResource
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import answer
from lastword.kafka.topics.cleaner_settings import CLEANER_SETTINGS
from lastword.processes.process_lock import is_running

Readiness = Literal["ready", "not yet", "one ended"]

# More lines than a broker writes while it starts.
_MOST_LINES = 100_000


def await_ready(spec: ClusterSpec, folder: Path, log_sizes: Mapping[int, int], timeout_s: float) -> Readiness:
    """Waits until the cluster answers and every broker is registered; BrokerFailed if a started broker dies.

    `log_sizes` has the started brokers, each with the size of its log before the start: earlier lines do not explain
    this death. If a broker that ran before the start ends meanwhile, the result is "one ended".
    """
    admin = connection_to(folder, spec).admin()
    give_up_at = time.monotonic() + timeout_s
    while True:
        for broker in spec.brokers:
            files = node_files(folder, broker)
            if not is_running(files):
                if broker.node_id not in log_sizes:
                    return "one ended"
                raise _died(broker, files, log_sizes[broker.node_id])
        try:
            cluster = admin.list_topics(timeout=0.25)
            # Our cluster, and not another Kafka that took the port in the meantime.
            if str(cluster.cluster_id) == spec.cluster_id and len(cluster.brokers) == len(spec.brokers):
                return "ready"
        except KafkaException:
            pass
        if time.monotonic() > give_up_at:
            return "not yet"
        time.sleep(0.02)


def connection_to(folder: Path, spec: ClusterSpec) -> Connection:
    """The connection of its administrator."""
    return Connection(bootstrap_servers=spec.bootstrap_servers, properties=admin_settings(folder, spec.security))


def settings_to_know(spec: ClusterSpec, folder: Path) -> list[str]:
    """A line for each setting of the cluster that the broker does not know, and for each that does harm."""
    if not spec.settings:
        return []
    # In a variable, because an admin client without one is closed before it has answered.
    admin = connection_to(folder, spec).admin()
    resource = ConfigResource(ConfigResource.Type.BROKER, str(spec.brokers[0].node_id))
    in_force = answer(admin.describe_configs([resource])[resource], "settings of the broker")
    # The broker hides the value of a setting that it does not know, as that of a password.
    known = {name: entry.value or "" for name, entry in in_force.items() if not entry.is_sensitive}
    lines = []
    for name in spec.settings:
        if name in CLEANER_SETTINGS and name in known:
            lines += CLEANER_SETTINGS[name].warnings(known[name])
        elif name not in known and "password" not in name:
            advice = did_you_mean(name, list(known)) or "check its name"
            lines.append(f"the broker knows no setting {name!r} and ignores it: {advice}")
    return lines


def cut_off_at_start(folder: Path, broker: BrokerSpec, log_size: int) -> list[str]:
    """The records that the broker removed, by its log after `log_size` bytes: see `cut_off`."""
    return cut_off(last_lines(node_files(folder, broker).log, _MOST_LINES, log_size))


def _died(broker: BrokerSpec, files: NodeFiles, log_size: int) -> BrokerFailed:
    tail = without_frames(files.log_tail(200, since=log_size))
    text = "\n".join(tail)
    if "Address already in use" in text:
        return PortTaken(
            f"broker {broker.node_id} died while starting: a port was taken while it started: start it again, or "
            "choose another with --port",
            log_tail=tail[-12:],
        )
    if "Failed to acquire lock on file .lock" in text:
        reason = f"its data folder {files.data} is in use by another live process: stop that one first"
    elif "No space left on device" in text:
        reason = "the disk is full: make room and start it again"
    elif refusal := refused_setting(tail):
        reason = refusal
    else:
        reason = f"see the lines below, and {files.log}"
    return BrokerFailed(f"broker {broker.node_id} died while starting: {reason}", log_tail=tail[-12:])
