"""The verb `team`: accounts for outside programs that take part in the fraud scenario."""

from __future__ import annotations

import argparse
from textwrap import indent

from lastword.cli import cluster_choice, options
from lastword.cli.local.broker_users import make_account
from lastword.cli.output import print_json
from lastword.core.errors import BadInput


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Outside teams: programs in any language that read new_users, write actions and keep their counters in "
        "team_stats. Each team has its own account.",
        "lastword team add team-16",
    )
    subs = made.add_subparsers(required=True, metavar="ACTION")
    add_ = options.sub_parser(
        subs,
        "add",
        "make a team's account on a cluster that asks for passwords, and print client settings for kafka-python, "
        "librdkafka and Java",
        "lastword team add team-16",
        add,
    )
    add_.add_argument("name")
    options.add_json(add_)
    options.add_connection(add_)
    return made


def add(args: argparse.Namespace) -> int:
    from lastword.kafka.broker import logins
    from lastword.kafka.broker.users import Rights, check_user_name
    from lastword.teams.board.board_shapes import TeamAccount
    from lastword.teams.board.registering import register_team

    check_user_name(args.name)
    _refuse_taken(args.name)
    connection = cluster_choice.connection(args)
    connection.reach()
    if "sasl.username" not in connection.properties:
        raise BadInput(
            f"{connection.bootstrap_servers} was reached without a password, so a team needs no account there: any "
            "program may take part; start a cluster with passwords with  lastword up --secure"
        )
    # An outside team restores its counters from team_stats, so it may read that topic too.
    rights = Rights(read=("new_users", "team_stats"), write=("actions", "team_stats"), groups=(args.name,))
    register_team(connection, args.name)
    account = make_account(connection, args.name, rights)
    if args.json:
        print_json(TeamAccount(args.name, str(account.file), account.login))
        return 0
    servers = connection.bootstrap_servers
    print(f"team {args.name}: {rights}")
    print(f"Its client settings, with the password, are in {account.file}, which only you can read, and here:\n")
    newer = (
        f"librdkafka {logins.FIRST_LIBRDKAFKA} or newer (confluent-kafka and many others; "
        'an older one is refused with "invalid credentials")'
    )
    for who, text in (
        ("kafka-python", logins.for_kafka_python(servers, account.login)),
        (newer, logins.for_librdkafka(servers, account.login)),
        ("Java", logins.for_java(servers, account.login)),
    ):
        print(f"{who}:\n{indent(text, '  ')}\n")
    return 0


def _refuse_taken(name: str) -> None:
    """Refuses a name whose group the pipeline, an inside team or lastword uses."""
    from lastword.teams.parts import pipeline

    plan = pipeline()
    if name == plan.app or name.startswith("lastword") or name in {rule.name for rule in plan.rules}:
        raise BadInput(f"team name {name!r} is used by the pipeline {plan.app}, its teams or lastword: choose another")
