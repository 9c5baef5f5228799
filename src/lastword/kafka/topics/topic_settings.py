"""A topic's settings, checked before the broker sees them and explained in our own words.

A broker answers a bad value with its own range, and takes a dangerous value without a word. Here a bad value is
refused with the range and how to write it, and a dangerous value is taken with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lastword.core.errors import BadInput
from lastword.core.nearest import did_you_mean
from lastword.kafka.topics.cleaner_settings import CLEANER_SETTINGS
from lastword.kafka.topics.setting_kinds import Setting
from lastword.kafka.topics.settings_table import KNOWN_TO_KAFKA, TOPIC_SETTINGS

_SEE_ALL = "see  lastword topic explain"


@dataclass(frozen=True, kw_only=True)
class CheckedSettings:
    """Settings as the broker takes them (plain numbers), and warnings about dangerous values."""

    settings: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def validated(settings: Mapping[str, str], *, present: Mapping[str, str] | None = None) -> CheckedSettings:
    """The settings in plain numbers, with warnings; BadInput names the range.

    `present` has the present settings of the topic, for settings that depend on each other; without it, the defaults.
    A setting that Kafka knows and our table lacks passes as it is, and a warning says so.
    """
    plain: dict[str, str] = {}
    warnings: list[str] = []
    for name, text in settings.items():
        refuse_unknown(name)
        setting = TOPIC_SETTINGS.get(name)
        if setting is None:
            plain[name] = text
            warnings.append(f"{name}={text}: lastword does not check this setting, only the broker does")
        else:
            plain[name] = setting.kind.plain(name, text)
            warnings.extend(setting.warnings(plain[name]))
    _refuse_crossed_lags({**(present or {}), **plain}, given=plain)
    return CheckedSettings(settings=plain, warnings=tuple(warnings))


def refuse_unknown(name: str) -> None:
    """BadInput for a name that is no topic setting, with the nearest topic setting."""
    if name in KNOWN_TO_KAFKA:
        return
    on_the_broker = CLEANER_SETTINGS.get(name)
    if on_the_broker is not None:
        instead = on_the_broker.for_one_topic
        raise BadInput(
            f"{name} is set on the broker, not on a topic: use  lastword broker start --set {name}=VALUE"
            + (f", or set {instead} for this topic" if instead else "")
        )
    raise BadInput(f"no topic setting is called {name!r}: {did_you_mean(name, sorted(KNOWN_TO_KAFKA)) or _SEE_ALL}")


def explanation(name: str) -> str:
    """What one setting of a topic, or of the broker's cleaner, means: a few lines."""
    setting = TOPIC_SETTINGS.get(name) or CLEANER_SETTINGS.get(name)
    if setting is not None:
        return "\n".join([name, *(f"  {label:<12} {text}" for label, text in _facts(setting))])
    if name in KNOWN_TO_KAFKA:
        return (
            f"{name}\n  one of Kafka's topic settings that say little about compaction; lastword passes it on unchecked"
        )
    known = sorted(KNOWN_TO_KAFKA | CLEANER_SETTINGS.keys())
    raise BadInput(f"no setting is called {name!r}: {did_you_mean(name, known) or _SEE_ALL}")


def explanations_markdown() -> str:
    """The page docs/topic-settings.md."""
    lines = [
        "# Topic settings",
        "",
        "<!-- Made by scripts/write_docs.py from settings_table.py and cleaner_settings.py in kafka/topics. -->",
        "",
        "Every setting that decides what a compacted topic keeps, for how long and at what cost, with the defaults of",
        "Kafka 4.3. `lastword topic create` and `lastword topic alter` check them before the broker sees them: a value",
        "outside the range is refused, a dangerous one is taken with a warning. Durations may be written like `10s` or",
        "`7d`, sizes like `64MiB`. `lastword topic explain NAME` shows the same text.",
        "",
        "## Set on the topic",
        "",
        *_overview(TOPIC_SETTINGS.values()),
        *_sections(TOPIC_SETTINGS.values()),
        "## Set on the broker",
        "",
        "The log cleaner serves all topics of a broker, so these are not settings of a topic. For a local cluster:",
        "`lastword broker start --set NAME=VALUE`.",
        "",
        *_overview(CLEANER_SETTINGS.values()),
        *_sections(CLEANER_SETTINGS.values()),
        "## Passed on unchecked",
        "",
        "Kafka has more topic settings. lastword takes them, says that it did not check them, and leaves that to the",
        "broker: " + ", ".join(f"`{name}`" for name in sorted(KNOWN_TO_KAFKA - TOPIC_SETTINGS.keys())) + ".",
        "",
    ]
    return "\n".join(lines)


def _facts(setting: Setting) -> list[tuple[str, str]]:
    facts = [
        ("meaning", setting.meaning),
        ("default", setting.kind.shown(setting.default)),
        ("range", setting.kind.range),
        ("recommended", setting.recommendation),
        *(("dangerous", f"{danger.where}: {danger.harm}") for danger in setting.dangers),
    ]
    if setting.name in CLEANER_SETTINGS:
        where = "on the broker" + (f"; for one topic: {setting.for_one_topic}" if setting.for_one_topic else "")
        facts.append(("set", where))
    return facts


def _overview(settings: Iterable[Setting]) -> list[str]:
    rows = [
        # A bar inside a cell would end it.
        f"| `{setting.name}` | {setting.kind.shown(setting.default)} | {setting.kind.range.replace('|', 'or')} |"
        for setting in settings
    ]
    return ["| setting | default | range |", "|---|---|---|", *rows, ""]


def _sections(settings: Iterable[Setting]) -> list[str]:
    lines: list[str] = []
    for setting in settings:
        lines += [f"### {setting.name}", ""]
        lines += [f"- **{label}**: {text}" for label, text in _facts(setting)]
        lines.append("")
    return lines


def _refuse_crossed_lags(together: Mapping[str, str], *, given: Mapping[str, str]) -> None:
    """Kafka refuses a least lag above the greatest; we say which of the two to change."""
    least, greatest = "min.compaction.lag.ms", "max.compaction.lag.ms"
    at_least, at_most = (int(together.get(name, TOPIC_SETTINGS[name].default)) for name in (least, greatest))
    if at_least <= at_most or not {least, greatest} & given.keys():
        return
    raise BadInput(
        f"{least}={at_least} is more than {greatest}={at_most}: a record can't be kept from cleaning for longer than "
        "it may wait for it; lower the first or raise the second"
    )
