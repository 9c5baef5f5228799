"""`broker user`: the accounts of a local cluster that was started with --secure."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lastword.cli import cluster_choice, options
from lastword.cli.json_lines import UserFileLine, UserLine
from lastword.cli.output import print_json, print_table
from lastword.core.errors import BadInput
from lastword.core.home import default_home

if TYPE_CHECKING:
    from lastword.kafka.broker.users import Rights
    from lastword.kafka.client.connection import Connection


def add_user_actions(subs: options.Subs[argparse.ArgumentParser]) -> None:
    user: argparse.ArgumentParser = subs.add_parser(
        "user",
        help="accounts of a cluster started with --secure: add, list, remove",
        description="Manages the accounts of a cluster that was started with --secure. An account has a password and "
        "only the rights that you give it.",
        epilog="example:\n  lastword broker user add reports --read user-profiles --group reports",
        formatter_class=options.Formatter,
        allow_abbrev=False,
    )
    actions = user.add_subparsers(required=True, metavar="ACTION")
    add = options.sub_parser(
        actions,
        "add",
        "add an account, and write its client settings with a new password to a file that only you can read",
        "lastword broker user add reports --read user-profiles --read orders --group reports",
        add_user_,
    )
    add.add_argument("name", help="name of the account")
    for option, right in (("--read", "a topic that the account may read"), ("--write", "a topic that it may write")):
        add.add_argument(option, action="append", default=[], metavar="TOPIC", help=f"{right}; may be repeated")
    add.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        help="a consumer group that the account may use; may be repeated",
    )
    listing = options.sub_parser(
        actions, "list", "list the accounts and their rights", "lastword broker user list", list_
    )
    remove = options.sub_parser(
        actions,
        "remove",
        "remove an account with its password and rights",
        "lastword broker user remove reports",
        remove_,
    )
    remove.add_argument("name", help="name of the account")
    for parser in (add, listing):
        options.add_json(parser)
    for parser in (add, listing, remove):
        options.add_connection(parser)


def add_user_(args: argparse.Namespace) -> int:
    from lastword.kafka.broker.users import Rights

    connection = _administered(args)
    rights = Rights(read=tuple(args.read), write=tuple(args.write), groups=tuple(args.group))
    account = make_account(connection, args.name, rights)
    if args.json:
        print_json(UserFileLine(args.name, str(account.file)))
    else:
        print(f"user {args.name}: {rights}\nits client settings, with the password: {account.file}")
    return 0


class Account(NamedTuple):
    file: Path
    login: dict[str, str]


def make_account(connection: Connection, name: str, rights: Rights) -> Account:
    """Makes a user, and a file with the user's login that only its owner can read."""
    from lastword.kafka.broker.security import account_file, login_like, write_client_file
    from lastword.kafka.broker.users import add_user

    file = account_file(default_home(), str(connection.reach().cluster_id), name)

    def save(password: str) -> None:
        login = login_like(connection.properties, name, password)
        write_client_file(file, connection.bootstrap_servers, login)

    password = add_user(connection, name, rights, save)
    return Account(file, login_like(connection.properties, name, password))


def list_(args: argparse.Namespace) -> int:
    from lastword.kafka.broker.users import list_users

    users = list_users(_administered(args))
    if args.json:
        for user in users:
            rights = user.rights
            print_json(UserLine(user.name, rights.read, rights.write, rights.groups))
    else:
        print_table(["USER", "MAY"], [[user.name, str(user.rights)] for user in users])
    return 0


def remove_(args: argparse.Namespace) -> int:
    from lastword.kafka.broker.security import account_file
    from lastword.kafka.broker.users import check_user_name, remove_user

    check_user_name(args.name)
    connection = _administered(args)
    try:
        remove_user(connection, args.name)
    finally:
        # Also if an earlier command was killed before it removed the file.
        account_file(default_home(), str(connection.reach().cluster_id), args.name).unlink(missing_ok=True)
    print(f"user {args.name}: removed")
    return 0


def _administered(args: argparse.Namespace) -> Connection:
    """The chosen cluster; BadInput for a cluster without passwords."""
    connection = cluster_choice.connection(args)
    connection.reach()
    if "sasl.username" not in connection.properties:
        raise BadInput(
            f"the cluster at {connection.bootstrap_servers} has no passwords and no users: start a secure one with  "
            "lastword broker start --secure --cluster NAME"
        )
    return connection
