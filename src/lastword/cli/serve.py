"""The verb `serve`: HTTP over one or more tables."""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lastword.cli import cluster_choice, options
from lastword.cli.output import note
from lastword.cli.readable import counted
from lastword.core.errors import LastwordError
from lastword.core.home import default_home

if TYPE_CHECKING:
    from lastword.serve.running import Running


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Serves tables over HTTP on loopback, each from a replica that follows its topic. Runs until Ctrl-C.",
        """lastword serve --table users=user-profiles --table settings=app-settings,value=string --port 8090
curl http://127.0.0.1:8090/tables/users/rows/user-1
curl 'http://127.0.0.1:8090/tables/users/rows?prefix=user-&limit=10'
curl http://127.0.0.1:8090/users/count
curl -X PUT -d '{"name": "Alice"}' http://127.0.0.1:8090/tables/users/rows/user-1
curl -N http://127.0.0.1:8090/tables/users/changes
lastword serve --table stats=team_stats --board
lastword serve --table users=user-profiles --host 0.0.0.0 --token-file tokens.txt""",
        serve,
    )
    made.add_argument(
        "--table",
        action="append",
        required=True,
        metavar="NAME=TOPIC[,key=CODEC][,value=CODEC]",
        help="a table and its name in addresses; may be repeated. Codecs: string, json, bytes, int",
    )
    made.add_argument(
        "--port", type=options.count_argument, default=8090, metavar="P", help="default 8090; 0: a free one"
    )
    made.add_argument(
        "--data", metavar="DIR", help="where the replicas live (default: one place for each cluster, port and topic)"
    )
    made.add_argument(
        "--board", action="store_true", help="the board of the teams at /board too; it is kept in board_state"
    )
    made.add_argument(
        "--unsent-mb",
        type=options.count_argument,
        default=256,
        metavar="MB",
        help="what large answers may take of the memory until their clients have read them; default 256",
    )
    made.add_argument("--access-log", action="store_true", help="a line of JSON on standard output for each request")
    _add_front(made)
    options.add_connection(made)
    return made


def _add_front(made: argparse.ArgumentParser) -> None:
    """Where and to whom it is served."""
    made.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="default 127.0.0.1; any that others can reach needs --token-file",
    )
    made.add_argument(
        "--token-file",
        metavar="FILE",
        help="who may read and write: lines like  read TOKEN  and  write TOKEN , readable by its owner alone",
    )


def serve(args: argparse.Namespace) -> int:
    from lastword.serve.http.access_log import AccessLog
    from lastword.serve.http.limits import Limits
    from lastword.serve.http.tokens import tokens_of
    from lastword.serve.running import Front, TableToServe, running

    wanted = [TableToServe.parse(text) for text in args.table]
    access = AccessLog(sys.stdout.buffer) if args.access_log else None
    front = Front(
        port=args.port,
        host="127.0.0.1" if args.host == "localhost" else args.host,
        tokens=tokens_of(Path(args.token_file)) if args.token_file else None,
        access=access,
    )
    connection = cluster_choice.connection(args)
    folder = Path(args.data) if args.data else _default_folder(str(connection.reach().cluster_id), args.port)
    # Like Ctrl-C, at any moment: replicas are closed in order.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    _raise_open_files()
    # By default a read waits up to 5 ms for its turn whenever a batch of records is being folded in.
    sys.setswitchinterval(0.0005)
    try:
        tell = (lambda what: note(f"board: {what}")) if args.board else None
        limits = Limits(unsent_bytes=args.unsent_mb * 1024 * 1024)
        with running(connection, wanted, folder, front, limits=limits, board=tell, home=default_home()) as served:
            _attend(served)
    except KeyboardInterrupt:
        if access is not None:
            access.close()
        print("stopped", flush=True)
    return 0


def _raise_open_files() -> None:
    """As many as this user may have: each connection takes one, and a stream two."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _default_folder(cluster_id: str, port: int) -> Path:
    return default_home() / "served" / cluster_id / str(port)


def _is_ready(served: Running) -> bool:
    tables = all(table.replica.state.name == "ready" for table in served.tables)
    return tables and (served.board is None or served.board.is_ready)


def _attend(served: Running) -> None:
    """Says once that all is ready, and whenever a table is not what it was; until it is interrupted."""
    print(f"serving {', '.join(table.name for table in served.tables)} at {served.url}", flush=True)
    print(f"the console is at {served.url}/", flush=True)
    told: dict[str, str] = {}
    was_ready = False
    while served.server.is_up:
        for table in served.tables:
            state = table.replica.state
            if state.name == "rebuilding":
                # What is wrong with the store stands in the log already.
                told[table.name] = state.name
            elif state.name in ("connecting", "failed") and state.why and told.get(table.name) != str(state):
                told[table.name] = str(state)
                note(f"{table.name}: {state}")
            elif state.name == "ready" and told.pop(table.name, ""):
                note(f"{table.name}: ready again, with {len(table.replica)} rows")
        if not was_ready and _is_ready(served):
            was_ready = True
            parts = [f"{table.name} with {len(table.replica)} rows" for table in served.tables]
            if served.board is not None:
                parts.append(f"the board with {counted(len(served.board.board.teams), 'team')}")
            print(f"ready: {', '.join(parts)} at {served.url}", flush=True)
        time.sleep(0.1)
    raise LastwordError(f"the HTTP server at {served.url} ended by itself: start it again")
