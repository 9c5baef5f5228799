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
    from lastword.teams.serving.board_guest import BoardGuest

# A table of such a name has short routes, like /users, unless its option `short` says otherwise.
SHORT_NAMES = ("users",)


def parser(verb: str) -> argparse.ArgumentParser:
    parser = options.verb_parser(
        verb,
        "Serves tables over HTTP on loopback, each from a replica that follows its topic, until Ctrl-C.",
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
    parser.add_argument(
        "--table",
        action="append",
        required=True,
        metavar="NAME=TOPIC[,key=CODEC][,value=CODEC][,short=true|false]",
        help="serve a topic as the table NAME, with codecs string, json, bytes or int; may be repeated. short: values "
        "alone at /NAME, too (default: for the name users)",
    )
    parser.add_argument(
        "--port",
        type=options.count_argument,
        default=8090,
        metavar="P",
        help="port to listen on (default 8090; 0 chooses a free port)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="folder of the replicas (default: a folder in the home for each cluster and port)"
    )
    parser.add_argument(
        "--board",
        action="store_true",
        help="also serve the board of the teams at /board; its state is in the topic board_state",
    )
    parser.add_argument(
        "--unsent-mb",
        type=options.count_argument,
        default=256,
        metavar="MB",
        help="memory for large answers that clients have not read yet (default 256)",
    )
    parser.add_argument("--access-log", action="store_true", help="print a line of JSON for each request")
    _add_front(parser)
    options.add_connection(parser)
    return parser


def _add_front(parser: argparse.ArgumentParser) -> None:
    """The options of who can reach the server, and who may use it."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default 127.0.0.1); an address that others can reach needs --token-file",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="file of tokens, with lines  read TOKEN  or  write TOKEN ; only its owner may read it",
    )


def serve(args: argparse.Namespace) -> int:
    from lastword.serve.http.access_log import AccessLog
    from lastword.serve.http.limits import Limits
    from lastword.serve.http.tokens import tokens_of
    from lastword.serve.running import Front, TableToServe, running
    from lastword.teams.serving.board_guest import AbsentBoard, BoardGuest

    tables = [TableToServe.parse(text, short_names=SHORT_NAMES) for text in args.table]
    access_log = AccessLog(sys.stdout.buffer) if args.access_log else None
    front = Front(
        port=args.port,
        host="127.0.0.1" if args.host == "localhost" else args.host,
        tokens=tokens_of(Path(args.token_file)) if args.token_file else None,
        access=access_log,
    )
    connection = cluster_choice.connection(args)
    folder = Path(args.data) if args.data else _default_folder(str(connection.reach().cluster_id), args.port)
    # Every signal acts like Ctrl-C: replicas are closed before the end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    _raise_open_files()
    # With Python's default a read waits up to 5 ms whenever a batch of records is being applied.
    sys.setswitchinterval(0.0005)
    try:
        board = BoardGuest(lambda line: note(f"board: {line}")) if args.board else None
        guests = [board or AbsentBoard()]
        limits = Limits(unsent_bytes=args.unsent_mb * 1024 * 1024)
        with running(connection, tables, folder, front, limits=limits, guests=guests, home=default_home()) as served:
            _attend(served, board)
    except KeyboardInterrupt:
        if access_log is not None:
            access_log.close()
        print("stopped", flush=True)
    return 0


def _raise_open_files() -> None:
    """Raises the limit of open files to the user's maximum: each connection takes one file, and a stream two."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _default_folder(cluster_id: str, port: int) -> Path:
    return default_home() / "served" / cluster_id / str(port)


def _is_ready(served: Running, board: BoardGuest | None) -> bool:
    tables = all(table.replica.state.name == "ready" for table in served.tables)
    return tables and (board is None or board.live.is_ready)


def _attend(served: Running, board: BoardGuest | None) -> None:
    """Prints when all tables are ready, and each later change of a table's state, until a signal."""
    print(f"serving {', '.join(table.name for table in served.tables)} at {served.url}", flush=True)
    print(f"the console is at {served.url}/", flush=True)
    reported: dict[str, str] = {}
    was_ready = False
    while served.server.is_up:
        for table in served.tables:
            state = table.replica.state
            if state.name == "rebuilding":
                # The log already has the reason.
                reported[table.name] = state.name
            elif state.name in ("connecting", "failed") and state.why and reported.get(table.name) != str(state):
                reported[table.name] = str(state)
                note(f"{table.name}: {state}")
            elif state.name == "ready" and reported.pop(table.name, ""):
                note(f"{table.name}: ready again, with {len(table.replica)} rows")
        if not was_ready and _is_ready(served, board):
            was_ready = True
            parts = [f"{table.name} with {len(table.replica)} rows" for table in served.tables]
            if board is not None:
                parts.append(f"the board with {counted(len(board.live.board.teams), 'team')}")
            print(f"ready: {', '.join(parts)} at {served.url}", flush=True)
        time.sleep(0.1)
    raise LastwordError(f"the HTTP server at {served.url} stopped unexpectedly: see its log, and start it again")
