"""Generated users: always the same for a seed and a number, and as many of each kind as was promised."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import msgspec
import pytest

from lastword.teams.users.generated_users import USER_SCHEMA, GeneratedUser, number_of, users
from support.fifteen_rules import ACTIONS, RULES, expected_matches

MANY = list(islice(users(seed=0), 20_000))
SQL_TYPES = {"STRING": str, "BOOLEAN": bool, "INT": int}


def share(kind: list[bool]) -> float:
    return sum(kind) / len(kind)


def test_a_user_has_the_fields_of_the_schema_in_its_order_with_its_types() -> None:
    columns = [line.split() for line in USER_SCHEMA.replace(",", "").splitlines()]
    assert len(columns) == 15
    assert all(column[2:] == ["NOT", "NULL"] for column in columns)
    promised = [(name, SQL_TYPES[kind]) for name, kind, *_ in columns]
    for user in MANY[:1000]:
        decoded = msgspec.json.decode(msgspec.json.encode(user))
        assert [(name, type(value)) for name, value in decoded.items()] == promised
        assert "" not in decoded.values()


def test_a_user_of_a_number_and_a_seed_is_this_one_for_ever() -> None:
    assert next(users(seed=7, start=1234)) == GeneratedUser(
        email="john.doe.1234@fastmail.example",
        credit_card_number="343433294418598",
        company_name="Heron GmbH",
        company_slogan="We deliver local moments",
        industry="Medical Instruments",
        user_name="john.doe1234",
        avatar="https://avatars.example.com/u/1234.png",
        name="John Doe",
        profession="nurse",
        field="IT",
        premium=False,
        credit=10,
        time_zone="Asia/Tokyo",
        user_agent="Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/17.5 Safari/605.1",
        pack="small",
    )


@pytest.mark.parametrize("start", [1, 255, 256, 257, 700])
def test_users_from_a_number_on_are_those_that_a_run_from_the_first_comes_to(start: int) -> None:
    assert list(islice(users(seed=0, start=start), 600)) == MANY[start : start + 600]


def test_another_seed_gives_other_users() -> None:
    others = list(islice(users(seed=1), 1000))
    assert sum(mine.name == other.name for mine, other in zip(MANY, others, strict=False)) < 100


def test_a_tenth_are_john_doe_have_the_avatar_example_org_and_the_pack_free() -> None:
    assert share([user.name == "John Doe" for user in MANY]) == pytest.approx(0.1, abs=0.01)
    assert share([user.avatar == "example.org" for user in MANY]) == pytest.approx(0.1, abs=0.01)
    assert share([user.pack == "free" for user in MANY]) == pytest.approx(0.1, abs=0.01)
    assert {user.pack for user in MANY} == {"free", "small"}


def test_half_are_premium() -> None:
    assert share([user.premium for user in MANY]) == pytest.approx(0.5, abs=0.015)


def test_credit_is_uniform_from_minus_20_to_19() -> None:
    counts = Counter(user.credit for user in MANY)
    assert sorted(counts) == list(range(-20, 20))
    assert all(400 < times < 600 for times in counts.values()), counts


def test_what_is_drawn_for_one_field_says_nothing_about_another() -> None:
    kinds = {
        "premium": [user.premium for user in MANY],
        "rich": [user.credit >= 0 for user in MANY],
        "john": [user.name == "John Doe" for user in MANY],
        "avatar": [user.avatar == "example.org" for user in MANY],
        "free": [user.pack == "free" for user in MANY],
        "even": [number % 2 == 0 for number in range(len(MANY))],
    }
    for name, kind in kinds.items():
        for other, second in kinds.items():
            if name < other:
                both = share([a and b for a, b in zip(kind, second, strict=True)])
                assert both == pytest.approx(share(kind) * share(second), abs=0.015), (name, other)


def test_every_email_is_another_and_tells_the_number_of_its_user() -> None:
    assert [number_of(user.email) for user in MANY] == list(range(len(MANY)))


@pytest.mark.parametrize("email", ["", "user-1", "a@b.c", "ada.12@x", "ada.chen.@x", "ada.chen.1x@y", "ada.chen.7"])
def test_an_email_of_nobody_here_has_no_number(email: str) -> None:
    assert number_of(email) is None


def test_each_of_the_fifteen_rules_holds_for_some_users_and_not_for_all() -> None:
    matches = Counter(name for user in MANY for name in expected_matches(msgspec.structs.asdict(user)))
    assert matches.keys() == RULES.keys() == ACTIONS.keys()
    assert {name: n for name, n in matches.items() if not 0.01 < n / len(MANY) < 0.9} == {}


def test_the_shares_of_the_rules_that_the_distribution_fixes_are_what_it_says() -> None:
    matches = Counter(name for user in MANY for name in expected_matches(msgspec.structs.asdict(user)))
    fixed = {"team-7": 0.5 * 9 / 40, "team-8": 5 / 40, "team-14": 0.1, "team-15": 0.1}
    assert {name: matches[name] / len(MANY) for name in fixed} == pytest.approx(fixed, abs=0.01)


def test_both_halves_of_a_rule_with_an_or_hold_for_some_users_alone() -> None:
    assert any(user.avatar.startswith("http://") for user in MANY)
    assert {user.field for user in MANY} > {"IT", "Technology"}
    assert any("MSIE" in user.user_agent and "Trident" not in user.user_agent for user in MANY)
    assert any("Trident" in user.user_agent and "MSIE" not in user.user_agent for user in MANY)
