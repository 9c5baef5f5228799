"""`broker user`: the accounts of a local cluster that asks for a password."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lastword.cli import options
from lastword.cli.output import print_json, print_table
from lastword.core.errors import BadInput

if TYPE_CHECKING:
    from lastword.kafka.local import LocalCluster


def add_user_actions(subs: options.Subs[argparse.ArgumentParser]) -> list[argparse.ArgumentParser]:
    """The parsers of `user` and what is below it."""
    user: argparse.ArgumentParser = subs.add_parser(
        "user",
        help="accounts of a cluster started with --secure: add, list, remove",
        description="Accounts of a cluster that was started with --secure: each has a password and the rights it was "
        "given, and nothing else.",
        epilog="example:\n  lastword broker user add reports --read user-profiles --group reports",
        formatter_class=options.Formatter,
        allow_abbrev=False,
    )
    actions = user.add_subparsers(required=True, metavar="ACTION")
    add = options.sub_parser(
        actions,
        "add",
        "make an account; its client settings, with a new password, go to a file that only you can read",
        "lastword broker user add reports --read user-profiles --read orders --group reports",
        add_user_,
    )
    add.add_argument("name")
    for option, right in (("--read", "a topic it may read"), ("--write", "a topic it may write")):
        add.add_argument(option, action="append", default=[], metavar="TOPIC", help=f"{right}; may be repeated")
    add.add_argument("--group", action="append", default=[], metavar="GROUP", help="a consumer group it may use")
    listing = options.sub_parser(actions, "list", "every account and its rights", "lastword broker user list", list_)
    remove = options.sub_parser(
        actions, "remove", "take its password and its rights", "lastword broker user remove reports", remove_
    )
    remove.add_argument("name")
    for parser in (add, listing):
        options.add_json(parser)
    return [add, listing, remove]


def add_user_(args: argparse.Namespace) -> int:
    from lastword.kafka.security import login_like, user_file, write_client_file
    from lastword.kafka.users import Rights, add_user, check_user_name

    cluster = _secure_cluster(args)
    connection = cluster.connection
    check_user_name(args.name)
    rights = Rights(read=tuple(args.read), write=tuple(args.write), groups=tuple(args.group))
    password = add_user(connection, args.name, rights)
    file = user_file(cluster.folder, args.name)
    settings = login_like(connection.properties, args.name, password)
    write_client_file(file, connection.bootstrap_servers, settings)
    if args.json:
        print_json({"user": args.name, "file": str(file)})
    else:
        print(f"user {args.name}: {rights}\nits client settings, with the password: {file}")
    return 0


def list_(args: argparse.Namespace) -> int:
    from lastword.kafka.users import list_users

    users = list_users(_secure_cluster(args).connection)
    if args.json:
        for user in users:
            rights = user.rights
            print_json({"user": user.name, "read": rights.read, "write": rights.write, "groups": rights.groups})
    else:
        print_table(["USER", "MAY"], [[user.name, str(user.rights)] for user in users])
    return 0


def remove_(args: argparse.Namespace) -> int:
    from lastword.kafka.security import user_file
    from lastword.kafka.users import remove_user

    cluster = _secure_cluster(args)
    remove_user(cluster.connection, args.name)
    user_file(cluster.folder, args.name).unlink(missing_ok=True)
    print(f"user {args.name}: removed")
    return 0


def _secure_cluster(args: argparse.Namespace) -> LocalCluster:
    cluster = options.local_cluster(args.cluster, print)
    cluster.connection.reach()
    if cluster.spec is not None and cluster.spec.security == "open":
        raise BadInput(
            f"cluster {args.cluster} asks nobody for a password, so it has no users: start another with  "
            "lastword broker start --secure --cluster NAME"
        )
    return cluster
