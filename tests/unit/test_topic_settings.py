"""Settings are checked before the broker sees them, and the docs say what the code says."""

from __future__ import annotations

import pytest

from lastword.core.errors import BadInput
from lastword.kafka.topics.cleaner_settings import CLEANER_SETTINGS
from lastword.kafka.topics.setting_kinds import Choice, Setting
from lastword.kafka.topics.settings_table import TOPIC_SETTINGS
from lastword.kafka.topics.topic_settings import explanation, validated

ALL_SETTINGS = [*TOPIC_SETTINGS.values(), *CLEANER_SETTINGS.values()]


def test_the_settings_of_a_user_profile_store_are_taken_with_a_warning_each() -> None:
    checked = validated(
        {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.ms": "10000",
            "delete.retention.ms": "100",
        }
    )
    assert checked.settings["segment.ms"] == "10000"
    assert [warning.partition("=")[0] for warning in checked.warnings] == [
        "min.cleanable.dirty.ratio",
        "segment.ms",
        "delete.retention.ms",
    ]
    assert "keeps the deleted keys" in checked.warnings[2]


@pytest.mark.parametrize(
    ("name", "written", "taken"),
    [
        ("segment.ms", "10s", "10000"),
        ("segment.ms", "100ms", "100"),
        ("segment.ms", "1.5h", "5400000"),
        ("delete.retention.ms", "7d", "604800000"),
        ("retention.ms", "-1", "-1"),
        ("segment.bytes", "64MiB", "67108864"),
        ("segment.bytes", "1 GiB", "1073741824"),
        ("min.cleanable.dirty.ratio", " .25 ", ".25"),
        ("min.cleanable.dirty.ratio", "1e-1", "1e-1"),
        ("cleanup.policy", "delete, compact", "compact,delete"),
    ],
)
def test_a_value_reaches_kafka_as_the_plain_value_it_stands_for(name: str, written: str, taken: str) -> None:
    assert validated({name: written}).settings == {name: taken}


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("segment.ms", "0"),
        ("segment.ms", "9223372036854775808"),
        ("segment.ms", "1.5"),
        ("segment.ms", "0.5ms"),
        ("segment.ms", "10 seconds"),
        ("segment.ms", "-10s"),
        ("segment.ms", ""),
        ("segment.ms", "1_000"),
        ("segment.ms", "٣"),
        ("segment.ms", "64MiB"),
        ("segment.bytes", "1048575"),
        ("segment.bytes", "2147483648"),
        ("segment.bytes", "64MB"),
        ("segment.bytes", "10s"),
        ("delete.retention.ms", "-1"),
        ("min.insync.replicas", "0"),
        ("min.insync.replicas", "1s"),
        ("retention.bytes", "-2"),
        ("min.cleanable.dirty.ratio", "1.01"),
        ("min.cleanable.dirty.ratio", "-0.1"),
        ("min.cleanable.dirty.ratio", "NaN"),
        ("min.cleanable.dirty.ratio", "Infinity"),
        ("min.cleanable.dirty.ratio", "half"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "COMPACT"),
        ("cleanup.policy", "compact,compact"),
        ("compression.type", "none"),
    ],
)
def test_a_value_outside_the_range_is_refused_with_the_range(name: str, written: str) -> None:
    with pytest.raises(BadInput) as refused:
        validated({name: written})
    assert str(refused.value).startswith(f"{name}={written}: it takes {TOPIC_SETTINGS[name].kind.range}")


def test_a_refused_duration_shows_how_to_write_one() -> None:
    with pytest.raises(BadInput, match=r"write a number of ms, or one like 7d \(ms, s, m, h, d\)"):
        validated({"segment.ms": "10 seconds"})


def test_a_mistyped_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(BadInput, match=r"did you mean 'min\.cleanable\.dirty\.ratio'\?"):
        validated({"min.cleanable.ratio": "0.1"})


def test_the_nearest_name_may_be_one_that_we_do_not_check() -> None:
    with pytest.raises(BadInput, match=r"did you mean 'flush\.messages'\?"):
        validated({"flush.message": "1"})


def test_a_name_like_no_other_is_refused_with_where_to_look() -> None:
    with pytest.raises(BadInput, match="lastword topic explain"):
        validated({"zzz": "1"})


def test_a_setting_of_the_broker_is_refused_with_the_topic_s_own_name_for_it() -> None:
    with pytest.raises(BadInput, match=r"set on the broker.*or set min\.cleanable\.dirty\.ratio for this topic"):
        validated({"log.cleaner.min.cleanable.ratio": "0.1"})


def test_a_setting_that_only_kafka_knows_passes_and_a_warning_says_so() -> None:
    checked = validated({"flush.ms": "soon"})
    assert checked.settings == {"flush.ms": "soon"}
    assert checked.warnings == ("flush.ms=soon: lastword does not check this setting, only the broker does",)


@pytest.mark.parametrize(
    ("name", "dangerous", "harmless"),
    [
        ("cleanup.policy", "delete", "compact"),
        ("cleanup.policy", "compact,delete", "compact"),
        ("min.cleanable.dirty.ratio", "0.049", "0.05"),
        ("min.cleanable.dirty.ratio", "1.0", "0.99"),
        ("segment.ms", "59999", "1m"),
        ("segment.bytes", "16777215", "16MiB"),
        ("delete.retention.ms", "3599999", "1h"),
        ("min.compaction.lag.ms", "604800001", "7d"),
        ("max.compaction.lag.ms", "59999", "1m"),
        ("retention.ms", "0", "-1"),
        ("retention.ms", "3599999", "1h"),
        ("retention.bytes", "1048575", "1MiB"),
        ("retention.bytes", "0", "-1"),
        ("max.message.bytes", "1023", "1KiB"),
        ("max.message.bytes", "16777217", "16MiB"),
    ],
)
def test_a_dangerous_value_is_taken_with_a_warning_and_its_neighbour_without(
    name: str, dangerous: str, harmless: str
) -> None:
    assert len(validated({name: dangerous}).warnings) == 1
    assert validated({name: harmless}).warnings == ()


def test_a_least_lag_above_the_greatest_is_refused() -> None:
    with pytest.raises(BadInput, match=r"min\.compaction\.lag\.ms=120000 is more than max\.compaction\.lag\.ms=60000"):
        validated({"min.compaction.lag.ms": "2m", "max.compaction.lag.ms": "1m"})
    assert validated({"min.compaction.lag.ms": "2m", "max.compaction.lag.ms": "2m"}).settings


def test_a_lag_is_held_against_the_one_the_topic_has_already() -> None:
    present = {"min.compaction.lag.ms": "0", "max.compaction.lag.ms": "60000"}
    with pytest.raises(BadInput, match="lower the first or raise the second"):
        validated({"min.compaction.lag.ms": "2m"}, present=present)
    assert validated({"min.compaction.lag.ms": "1m"}, present=present).settings == {"min.compaction.lag.ms": "60000"}


@pytest.mark.parametrize("setting", ALL_SETTINGS, ids=lambda setting: setting.name)
def test_every_default_is_in_its_own_range(setting: Setting) -> None:
    assert setting.kind.plain(setting.name, setting.default) == setting.default


@pytest.mark.parametrize("setting", ALL_SETTINGS, ids=lambda setting: setting.name)
def test_every_default_but_the_policy_is_free_of_danger(setting: Setting) -> None:
    assert bool(setting.warnings(setting.default)) == (setting.name == "cleanup.policy")


@pytest.mark.parametrize("setting", CLEANER_SETTINGS.values(), ids=lambda setting: setting.name)
def test_every_danger_of_a_broker_s_setting_applies_to_a_value_that_can_be_set(setting: Setting) -> None:
    kind = setting.kind
    inside = kind.words if isinstance(kind, Choice) else (str(kind.least), str(kind.most))
    for danger in setting.dangers:
        assert any(danger.applies(value) for value in inside), danger.where


def test_an_explanation_gives_meaning_default_range_recommendation_and_danger() -> None:
    assert explanation("log.cleaner.backoff.ms").splitlines() == [
        "log.cleaner.backoff.ms",
        "  meaning      How long a cleaner thread sleeps when no partition needs cleaning.",
        "  default      15000 (15s)",
        "  range        a whole number of 0 ms or more",
        "  recommended  15s; less only to watch compaction happen.",
        "  dangerous    below 100ms: an idle cleaner looks through every partition many times a second",
        "  set          on the broker",
    ]


def test_an_explanation_of_a_broker_s_setting_says_where_it_is_set() -> None:
    lines = explanation("log.cleaner.delete.retention.ms").splitlines()
    assert lines[-1] == "  set          on the broker; for one topic: delete.retention.ms"


def test_an_explanation_of_an_unknown_setting_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(BadInput, match=r"did you mean 'log\.cleaner\.threads'\?"):
        explanation("log.cleaner.thread")


def test_a_setting_outside_the_table_is_explained_as_passed_on() -> None:
    assert "passes it on unchecked" in explanation("flush.ms")
