"""The command line: finds the verb, runs its one function, and turns errors into one line and an exit code.

Only the module of the verb that was asked for is imported, so `lastword --help` loads neither Kafka nor Spark.

Verbs are in `rows`, `local`, `spark`, `teams` and `completion`, and in `serve`, `compare` and `demo`. They share
`options` (parsers and common options), `cluster_choice` (which cluster a verb works on), `output` (tables, JSON,
notes), `json_lines` (the shapes of that JSON), `readable` (values as people read them) and `progress_line`. Exit codes
belong to the errors: `core/errors.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TextIO

from lastword import __version__
from lastword.core.errors import BadInput, BrokerFailed, LastwordError

# verb -> (module of this package, what the verb does). The help shows them in this order.
VERBS: dict[str, tuple[str, str]] = {
    "up": ("local.up", "run everything: cluster, users, pipeline, HTTP; until Ctrl-C (--detach returns when ready)"),
    "down": ("local.up", "stop what `up` started"),
    "status": ("local.up", "what runs, since when, how often it was restarted, and its log"),
    "broker": ("local.broker", "the local Kafka cluster: start, stop, status, logs, users"),
    "topic": ("rows.topic", "topics: create, describe, alter, list, delete, explain, compact"),
    "put": ("rows.row_writes", "write a row"),
    "delete": ("rows.row_writes", "delete a row, with a tombstone"),
    "get": ("rows.row_reads", "the newest value of a key"),
    "load": ("rows.row_writes", "write rows from a file or standard input"),
    "scan": ("rows.row_reads", "the rows of a table, in key order"),
    "count": ("rows.row_reads", "how many keys are live"),
    "watch": ("rows.log_reads", "puts and deletes as they happen"),
    "dump": ("rows.row_reads", "the table as JSON lines that `load` reads"),
    "records": ("rows.log_reads", "the raw log: every record, tombstone and gap"),
    "sql": ("spark.sql", "Spark SQL over topics as tables"),
    "export": ("spark.export", "a table as Parquet, Delta, CSV or JSON lines, by Spark"),
    "run": ("spark.run", "a pipeline on Spark, exactly once; --check lists the mistakes in its file"),
    "serve": ("serve", "HTTP over one or more tables"),
    "compare": ("compare", "whether two instances of `serve` have the same rows"),
    "board": ("teams.board", "the board of the teams: badges, actions, numbers, and refused records"),
    "team": ("teams.team", "accounts for outside teams on a secure cluster"),
    "demo": ("demo", "scenarios that play themselves, and generated users"),
    "completion": ("completion.completion", "a script with which bash, zsh or fish completes this command"),
}

_USAGE = """\
lastword gives you the last word on every key: compacted Kafka topics as tables.

usage: lastword VERB ...        lastword VERB --help shows its options and an example

{verbs}

Verbs about rows and topics take --cluster NAME, or --bootstrap-servers HOST:PORT and --config FILE. Without these
options they use the local cluster `default`.
Start with:  lastword up --detach   then   lastword scan user-profiles
"""


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    0 done, 1 not found or a check failed, 2 bad usage or input, 3 the cluster or server can't be reached.
    """
    words = sys.argv[1:] if argv is None else argv
    return exit_code_of(lambda: _run(words))


def exit_code_of(run: Callable[[], int]) -> int:
    """The exit code of `run`; an error is printed as one line."""
    # A stream that the caller closed is None in Python.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    try:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        code = run()
        sys.stdout.flush()
        return code
    except LastwordError as error:
        _print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our pipe has closed it (`lastword dump t | head`): write nothing more.
        _drop_output()
        return 0
    except MemoryError:
        _print_error(
            LastwordError("out of memory: run the command on a machine, or with a limit, that has more memory")
        )
        return 1
    except OSError as failure:
        _drop_output()
        where = f"{failure.filename}: " if failure.filename else ""
        _print_error(
            LastwordError(f"{where}{failure.strerror or failure}: check the disk, the folder and its permissions")
        )
        return 1


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        width = max(map(len, VERBS))
        lines = "\n".join(f"  {verb:<{width}}  {summary}" for verb, (_, summary) in VERBS.items())
        sys.stdout.write(_USAGE.format(verbs=lines))
        return 0
    if words[0] in ("-V", "--version"):
        print(f"lastword {__version__}")
        return 0
    verb = words[0]
    if verb not in VERBS:
        from lastword.core.nearest import did_you_mean

        raise BadInput(f"no verb {verb!r}: {did_you_mean(verb, VERBS) or 'see  lastword --help'}")
    module = import_module(f"lastword.cli.{VERBS[verb][0]}")
    parser = module.parser(verb)
    args = parser.parse_args(words[1:])
    code: int = args.run(args)
    return code


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open as long as the process; pathlib is slow to load


def flush_output() -> None:
    """Writes the rest of the output now: at exit Python would print an error if the reader is gone."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(error: LastwordError) -> None:
    sys.stdout.flush()
    if sys.stderr.isatty():
        # Overwrites the rest of a progress line.
        sys.stderr.write("\r\x1b[K")
    print(f"lastword: {error}", file=sys.stderr)
    if isinstance(error, BrokerFailed):
        for line in error.log_tail:
            print(f"  | {line}", file=sys.stderr)
