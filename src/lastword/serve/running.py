"""Several tables in one process: a replica for each, and the server over all of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from lastword.core.codecs import Codec, codec_named
from lastword.core.errors import BadInput, ClusterUnreachable
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_names import refuse_illegal
from lastword.replica.replica import Replica
from lastword.replica.settings import ReplicaSettings
from lastword.serve.cluster.cluster_answers import ServedCluster
from lastword.serve.guest import Guest, guest_routes
from lastword.serve.http.access_log import AccessLog
from lastword.serve.http.host_check import LOOPBACK_NAMES
from lastword.serve.http.limits import Limits
from lastword.serve.http.routes import first_segments
from lastword.serve.http.tokens import Tokens
from lastword.serve.route_table import ROUTES
from lastword.serve.server import LOOPBACK, HttpServer, check_free
from lastword.serve.service import Service
from lastword.serve.tables.served_table import ServedTable, shown_topic
from lastword.serve.tables.writes import Writes

# How long a stop waits for writes that are on their way.
_DRAIN_S = 5.0
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, kw_only=True)
class TableToServe:
    """A table to serve: its name in addresses, its topic, its codecs, and whether it has short routes."""

    name: str
    topic: str
    key_codec: Codec
    value_codec: Codec
    short: bool = False

    @classmethod
    def parse(cls, text: str, *, short_names: Collection[str] = ()) -> TableToServe:
        """The table of `users=user-profiles,key=string,value=json,short=true`; the options may be left out.

        A table with one of `short_names` has short routes, unless its option `short` says otherwise.
        """
        named, *others = text.split(",")
        name, _, topic = named.partition("=")
        options = {"key": "string", "value": "json", "short": str(name in short_names).lower()}
        for other in others:
            option, _, value = other.partition("=")
            if option not in options:
                raise BadInput(f"--table {text!r}: no option {option!r}; write it like users=user-profiles,key=string")
            options[option] = value
        if options["short"] not in ("true", "false"):
            raise BadInput(f"--table {text!r}: short must be true or false")
        if not topic or not _NAME.fullmatch(name):
            raise BadInput(f"--table {text!r}: write it like users=user-profiles, the name in letters, digits, - and _")
        # It names a folder.
        refuse_illegal(topic)
        return cls(
            name=name,
            topic=topic,
            key_codec=codec_named(options["key"]),
            value_codec=codec_named(options["value"]),
            short=options["short"] == "true",
        )


@dataclass(frozen=True, kw_only=True)
class Running:
    url: str
    tables: tuple[ServedTable, ...]
    server: HttpServer


@dataclass(frozen=True, kw_only=True)
class Front:
    """The address of the server, and who may use it."""

    port: int
    host: str = LOOPBACK
    tokens: Tokens | None = None
    access: AccessLog | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise BadInput(f"--port {self.port}: give 1 to 65535, or 0 for a free port")
        try:
            is_public = not ip_address(self.host).is_loopback
        except ValueError:
            raise BadInput(f"--host {self.host}: give an address of this machine, like 127.0.0.1 or 0.0.0.0") from None
        if is_public and self.tokens is None:
            raise BadInput(
                f"--host {self.host} can be reached by others: say who may read and write with --token-file FILE "
                "(lines like  read TOKEN  and  write TOKEN)"
            )


@contextmanager
def running(
    connection: Connection,
    wanted: Sequence[TableToServe],
    folder: Path,
    front: Front,
    *,
    limits: Limits | None = None,
    guests: Sequence[Guest] = (),
    home: Path | None = None,
) -> Iterator[Running]:
    """Serves the tables until the end of the `with` block, each from its own folder. They become ready one by one.

    The guests run as long as the tables. A cluster that lives under `home` is a local one.
    """
    _check_distinct("name", [each.name for each in wanted])
    # The folders are named after the topics.
    _check_distinct("topic", [each.topic for each in wanted])
    _check_short_names(wanted, guests)
    check_free(front.host, front.port)
    for each in wanted:
        _check_there(connection, each.topic, folder)
    for guest in guests:
        guest.check(connection)
    limits = limits or Limits()
    with ExitStack() as stack:
        tables = [_served(stack, connection, each, folder, limits) for each in wanted]
        for table in tables:
            # All writers stop before the first is waited for.
            stack.callback(table.writes.stop)
        for guest in guests:
            guest.start(connection, tables)
            stack.callback(guest.close)
        present = {guest.name: guest.is_present for guest in guests}
        cluster = ServedCluster(connection, tables, home=home, guests=present)
        # Before the tables end, because the cluster view reads them.
        stack.callback(cluster.close)
        names = (*LOOPBACK_NAMES, front.host)
        service = Service(tables, limits, front.tokens, names, guests=guests, cluster=cluster)
        stack.callback(service.close)
        server = HttpServer(
            service,
            host=front.host,
            port=front.port,
            stall_s=limits.stall_s,
            access=front.access,
        )
        # Stopped first, so that open requests still find their table.
        stack.callback(server.stop)
        server.start()
        cluster.start()
        yield Running(url=server.url, tables=tuple(tables), server=server)


def _served(
    stack: ExitStack, connection: Connection, wanted: TableToServe, folder: Path, limits: Limits
) -> ServedTable:
    """A table with its replica and its writer, which end with the stack."""
    replica = stack.enter_context(_replica(connection, wanted, folder / wanted.topic))
    writes = Writes(connection, wanted.topic, waiting=limits.waiting_writes, expected_id=lambda: shown_topic(replica))
    stack.callback(writes.close, _DRAIN_S)
    return ServedTable(wanted.name, wanted.key_codec, wanted.value_codec, replica, writes, wanted.short)


def _replica(connection: Connection, wanted: TableToServe, folder: Path) -> Replica:
    return Replica(
        connection,
        wanted.topic,
        folder,
        key_codec=wanted.key_codec,
        value_codec=wanted.value_codec,
        settings=ReplicaSettings(),
    )


def _check_there(connection: Connection, topic: str, folder: Path) -> None:
    """Refuses a missing topic. While the cluster is away, a replica on disk is enough."""
    try:
        connection.topic(topic)
    except ClusterUnreachable:
        if not any((folder / topic).glob("store-*")):
            raise


def _check_short_names(wanted: Sequence[TableToServe], guests: Sequence[Guest]) -> None:
    """Refuses short routes for a table whose name begins other paths."""
    taken = first_segments([*ROUTES, *guest_routes(guests)])
    for each in wanted:
        if each.short and each.name in taken:
            raise BadInput(
                f"the table {each.name!r} can't have short routes, because other paths begin with /{each.name}: "
                "choose another name, or leave out short=true"
            )


def _check_distinct(what: str, given: Sequence[str]) -> None:
    twice = next((each for each in given if given.count(each) > 1), None)
    if twice is not None:
        raise BadInput(f"the {what} {twice!r} is given to two tables: serve each {what} once")
