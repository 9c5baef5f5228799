"""The verb `team`: accounts for outside programs that take part in the fraud scenario."""

from __future__ import annotations

import argparse
from textwrap import indent

from lastword.cli import options
from lastword.cli.output import print_json
from lastword.core.errors import BadInput
from lastword.core.home import default_home


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Outside teams: programs in any language that read new_users, write actions and keep their counters in "
        "team_stats, each with an account of its own.",
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
    from lastword.kafka import logins
    from lastword.kafka.security import login_like, write_client_file
    from lastword.kafka.users import add_user, check_user_name, team_rights

    check_user_name(args.name)
    connection = options.connection(args)
    connection.reach()
    if "sasl.username" not in connection.properties:
        raise BadInput(
            f"{connection.bootstrap_servers} was reached without a password, so a team needs no account there: any "
            "program may take part; start one that asks with  lastword up --secure"
        )
    rights = team_rights(args.name)
    password = add_user(connection, args.name, rights)
    login = login_like(connection.properties, args.name, password)
    file = default_home() / "teams" / f"{args.name}.properties"
    write_client_file(file, connection.bootstrap_servers, login)
    if args.json:
        print_json({"team": args.name, "file": str(file), "settings": login})
        return 0
    servers = connection.bootstrap_servers
    print(f"team {args.name}: {rights}")
    print(f"Its client settings, with the password, are in {file}, which only you can read, and here:\n")
    for who, text in (
        ("kafka-python", logins.for_kafka_python(servers, login)),
        ("librdkafka (confluent-kafka and many others)", logins.for_librdkafka(servers, login)),
        ("Java", logins.for_java(servers, login)),
    ):
        print(f"{who}:\n{indent(text, '  ')}\n")
    return 0
