"""The verb `topic`: create, describe, change and compact topics."""

from __future__ import annotations

import argparse

from lastword.cli import cluster_choice, options
from lastword.cli.output import note, print_json, print_table
from lastword.cli.progress_line import ProgressLine
from lastword.cli.readable import size
from lastword.core.errors import BadInput
from lastword.core.home import default_home


def parser(verb: str) -> argparse.ArgumentParser:
    parser = options.verb_parser(
        verb,
        "Creates, describes, changes and compacts topics. A new topic is compacted unless its settings say otherwise.",
        "lastword topic create user-profiles --partitions 3 --set segment.ms=1h\n"
        "lastword topic describe user-profiles --scan\n"
        "lastword topic explain delete.retention.ms",
    )
    subs = parser.add_subparsers(required=True, metavar="ACTION")
    _add_create(subs)
    _add_describe(subs)
    _add_alter(subs)
    list_ = options.sub_parser(subs, "list", "list all topics", "lastword topic list", list_topics)
    list_.add_argument("--internal", action="store_true", help="also list Kafka's internal topics")
    options.add_json(list_)
    delete_ = options.sub_parser(
        subs, "delete", "delete a topic with all its records", "lastword topic delete old", delete
    )
    delete_.add_argument("name", help="name of the topic")
    _add_explain(subs)
    _add_compact(subs)
    for name, sub in subs.choices.items():
        if name != "explain":
            options.add_connection(sub)
    return parser


def _add_create(subs: options.Subs[argparse.ArgumentParser]) -> None:
    parser = options.sub_parser(
        subs,
        "create",
        "create a compacted topic",
        "lastword topic create user-profiles --partitions 3 --set segment.ms=10s --set min.cleanable.dirty.ratio=0.01",
        create,
    )
    parser.add_argument("name", help="name of the topic")
    parser.add_argument(
        "--partitions",
        type=options.count_argument,
        metavar="N",
        help="number of partitions (default 3); adding some later moves keys",
    )
    parser.add_argument(
        "--replication",
        type=options.count_argument,
        metavar="N",
        help="replicas of each partition (default 3, or the number of brokers if that is less)",
    )
    _add_set(parser)


def create(args: argparse.Namespace) -> int:
    from lastword.kafka.topics.topic_changes import create_topic

    created = create_topic(
        cluster_choice.connection(args),
        args.name,
        partitions=args.partitions,
        replication=args.replication,
        settings=options.settings(args.set),
    )
    for warning in created.warnings:
        note(f"warning: {warning}")
    print(f"topic {created.name}: {created.partitions} partitions, {created.replication} replica(s)")
    return 0


def _add_describe(subs: options.Subs[argparse.ArgumentParser]) -> None:
    parser = options.sub_parser(
        subs,
        "describe",
        "show the settings of a topic, and the brokers, offsets and size of each partition",
        "lastword topic describe user-profiles --scan",
        describe,
    )
    parser.add_argument("name", help="name of the topic")
    parser.add_argument(
        "--scan", action="store_true", help="read the log, and count the records and keys of each partition"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="show every setting (default: settings of compaction, and changed settings)",
    )
    options.add_json(parser)


def describe(args: argparse.Namespace) -> int:
    from lastword.kafka.topics.settings_table import TOPIC_SETTINGS
    from lastword.kafka.topics.topic_description import describe_topic
    from lastword.kafka.topics.topic_scan import ScannedTopic, scan_topic

    connection = cluster_choice.connection(args)
    topic = describe_topic(connection, args.name)
    progress = ProgressLine("scanning")
    scan = scan_topic(connection, args.name, progress.count) if args.scan else None
    progress.clear()
    if args.json:
        print_json(ScannedTopic(**vars(topic), scan=scan))
        return 0
    print(
        f"topic {topic.name}  id {topic.topic_id}  {len(topic.partitions)} partitions, {topic.replication} replica(s)\n"
    )
    print_table(
        ["SETTING", "VALUE", "FROM"],
        [
            [name, setting.value, setting.comes_from]
            for name, setting in topic.settings.items()
            if args.all or name in TOPIC_SETTINGS or setting.comes_from == "topic"
        ],
    )
    print()
    print_table(
        ["PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END", "ON DISK"],
        [
            [
                p.partition,
                p.leader,
                ",".join(map(str, p.replicas)),
                ",".join(map(str, p.in_sync)),
                p.start_offset,
                p.end_offset,
                size(p.bytes_on_disk),
            ]
            for p in topic.partitions
        ],
    )
    if topic.no_sizes_because:
        note(f"sizes on disk are unknown: {topic.no_sizes_because}")
    if scan is not None:
        print()
        print_table(
            ["PARTITION", "RECORDS", "KEYS", "LIVE KEYS", "TOMBSTONES", "STRAYED KEYS"],
            [[p.partition, p.records, p.keys, p.live_keys, p.tombstones, p.strayed_keys] for p in scan.partitions],
        )
        if scan.evenness is not None:
            print(f"the emptiest partition has {scan.evenness:.0%} of the keys of the fullest one")
        if scan.strayed_keys:
            note(
                f"{scan.strayed_keys} keys are not where Java's partitioner (murmur2) puts them: another partitioner "
                "wrote them, or partitions were added later; read such a key with  lastword get --all-partitions"
            )
    return 0


def _add_alter(subs: options.Subs[argparse.ArgumentParser]) -> None:
    parser = options.sub_parser(
        subs,
        "alter",
        "change settings, or add partitions",
        "lastword topic alter user-profiles --set delete.retention.ms=7d --reset segment.ms",
        alter,
    )
    parser.add_argument("name", help="name of the topic")
    _add_set(parser)
    parser.add_argument(
        "--reset", action="append", default=[], metavar="KEY", help="return a setting to its default; may be repeated"
    )
    parser.add_argument(
        "--partitions", type=options.count_argument, metavar="N", help="new number of partitions, more than now"
    )
    parser.add_argument(
        "--yes-move-keys", action="store_true", help="confirm that more partitions move keys to other partitions"
    )


def alter(args: argparse.Namespace) -> int:
    from lastword.kafka.topics.topic_changes import alter_topic

    altered = alter_topic(
        cluster_choice.connection(args),
        args.name,
        settings=options.settings(args.set),
        reset=args.reset,
        partitions=args.partitions,
        move_keys=args.yes_move_keys,
    )
    for warning in altered.warnings:
        note(f"warning: {warning}")
    changes = [f"{name}={value}" for name, value in altered.settings.items()]
    changes += [f"{name} is the default again" for name in altered.reset]
    changes += [f"{altered.partitions} partitions"] if args.partitions is not None else []
    print(f"topic {altered.name}: {', '.join(changes)}")
    return 0


def list_topics(args: argparse.Namespace) -> int:
    from lastword.kafka.topics.topic_description import list_topics as listed

    topics = listed(cluster_choice.connection(args), internal=args.internal)
    if args.json:
        for topic in topics:
            print_json(topic)
    else:
        print_table(
            ["TOPIC", "PARTITIONS", "REPLICAS", "CLEANUP POLICY"],
            [[t.name, t.partitions, t.replication, t.cleanup_policy] for t in topics],
        )
    return 0


def delete(args: argparse.Namespace) -> int:
    from lastword.kafka.topics.topic_changes import delete_topic

    delete_topic(cluster_choice.connection(args), args.name)
    print(f"topic {args.name}: deleted")
    return 0


def _add_explain(subs: options.Subs[argparse.ArgumentParser]) -> None:
    parser = options.sub_parser(
        subs,
        "explain",
        "explain a setting of compaction: its meaning, default, range and recommendation",
        "lastword topic explain\nlastword topic explain delete.retention.ms",
        explain,
    )
    parser.add_argument("setting", nargs="?", help="name of the setting (default: explain all)")


def explain(args: argparse.Namespace) -> int:
    from lastword.kafka.topics.cleaner_settings import CLEANER_SETTINGS
    from lastword.kafka.topics.settings_table import TOPIC_SETTINGS
    from lastword.kafka.topics.topic_settings import explanation

    names = [args.setting] if args.setting else [*TOPIC_SETTINGS, *CLEANER_SETTINGS]
    print("\n\n".join(explanation(name).rstrip() for name in names))
    return 0


_RIGHTS_TO_COMPACT = """\
rights that the user needs, on a cluster with ACLs:
  on the topic: Read, Write, Describe, DescribeConfigs, AlterConfigs
  on the transactional id lastword-compact-TOPIC: Write, Describe
  on the cluster: Describe, only to show the sizes on disk; DescribeConfigs, only to notice a disabled cleaner"""


def _add_compact(subs: options.Subs[argparse.ArgumentParser]) -> None:
    parser = options.sub_parser(
        subs,
        "compact",
        "make Kafka's cleaner compact a topic now, and show records and bytes before and after",
        "lastword topic compact user-profiles",
        compact,
    )
    parser.epilog = f"{parser.epilog}\n\n{_RIGHTS_TO_COMPACT}"
    parser.add_argument("name", help="name of the topic")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="seconds to wait (default 60)")
    options.add_json(parser)


def compact(args: argparse.Namespace) -> int:
    from lastword.kafka.compaction.on_demand import compact_topic

    if not args.timeout > 0:
        raise BadInput(f"--timeout {args.timeout:g} is not more than 0: set it to a number of seconds")
    progress = ProgressLine()
    compaction = compact_topic(
        cluster_choice.connection(args),
        args.name,
        home=default_home(),
        timeout_s=args.timeout,
        at_step=lambda step: progress.step(f"compacting {args.name}: {step}"),
    )
    progress.clear()
    if args.json:
        print_json(compaction)
        return 0
    print_table(
        ["PARTITION", "RECORDS BEFORE", "AFTER", "BYTES BEFORE", "AFTER", "WHY NOT SMALLER"],
        [
            [p.partition, p.before.records, p.after.records, size(p.bytes_before), size(p.bytes_after), p.why or ""]
            for p in compaction.partitions
        ],
    )
    for sentence in compaction.notes:
        note(sentence)
    before = sum(p.before.records for p in compaction.partitions)
    after = sum(p.after.records for p in compaction.partitions)
    print(f"{before} records became {after} in {compaction.took_s:.1f} s")
    return 0


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a topic setting, like segment.ms=10s or segment.bytes=64MiB; may be repeated",
    )
