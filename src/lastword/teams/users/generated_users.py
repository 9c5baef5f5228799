"""Generated users: user NUMBER of a seed is always the same, and no draw depends on another.

Half of them are premium, a tenth have the avatar "example.org", a tenth the name "John Doe", a tenth the pack "free",
and credit is uniform from -20 to 19. All other fields are drawn from `user_words`.
"""

from __future__ import annotations

import hashlib
import re
import struct
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import count, cycle, islice, product

import msgspec

from lastword.teams.users import user_words as words

# The only list of the fields of a user. As DDL, because a pipeline file has its schema as DDL.
USER_SCHEMA = """\
email STRING NOT NULL,
credit_card_number STRING NOT NULL,
company_name STRING NOT NULL,
company_slogan STRING NOT NULL,
industry STRING NOT NULL,
user_name STRING NOT NULL,
avatar STRING NOT NULL,
name STRING NOT NULL,
profession STRING NOT NULL,
field STRING NOT NULL,
premium BOOLEAN NOT NULL,
credit INT NOT NULL,
time_zone STRING NOT NULL,
user_agent STRING NOT NULL,
pack STRING NOT NULL
"""


class GeneratedUser(msgspec.Struct, frozen=True, gc=False):
    """One user; its JSON is the value of its record, and the email the key."""

    email: str
    credit_card_number: str
    company_name: str
    company_slogan: str
    industry: str
    user_name: str
    avatar: str
    name: str
    profession: str
    field: str
    premium: bool
    credit: int
    time_zone: str
    user_agent: str
    pack: str


def users(seed: int, start: int = 0) -> Iterator[GeneratedUser]:
    """The users of a seed from one number on, without end."""
    number = start
    for block in count(start // _BLOCK):
        for draws in _DRAWS.iter_unpack(_chance(seed, block)[(number % _BLOCK) * _DRAWS.size :]):
            yield _user(number, draws)
            number += 1


def number_of(email: str) -> int | None:
    """The number of the user with this email, or None if it is not a generated email."""
    found = _EMAIL.match(email)
    return int(found[1]) if found else None


# Each user has draws of 32, 16 and 8 bits. One hash gives the draws of many users, which costs very little.
_DRAWS = struct.Struct("<I5H11B")
_BLOCK = 256
_EMAIL = re.compile(r"[a-z]+\.[a-z]+\.([0-9]{1,18})@")


def _chance(seed: int, block: int) -> bytes:
    return hashlib.shake_128(b"%d/%d" % (seed, block)).digest(_BLOCK * _DRAWS.size)


def _mailbox(name: str) -> str:
    """The name for the part before the @: plain small letters."""
    plain = unicodedata.normalize("NFKD", name).lower()
    return "".join(letter for letter in plain if letter.isascii() and letter.isalpha())


def _wheel(choices: Sequence[str]) -> tuple[str, ...]:
    """The choices repeated to 256 entries, one for each number of 8 bits: a draw needs no division."""
    return tuple(islice(cycle(choices), 256))


_PEOPLE = [
    (f"{first} {last}", f"{_mailbox(first)}.{_mailbox(last)}")
    for first, last in product(words.FIRST_NAMES, words.LAST_NAMES)
]
_JOHN_DOE = ("John Doe", "john.doe")
_PROVIDERS = _wheel(words.EMAIL_PROVIDERS)
_CARDS = _wheel(words.CARD_PREFIXES)
_COMPANIES = _wheel([" ".join(parts) for parts in product(words.COMPANY_WORDS, words.COMPANY_KINDS)])
_SLOGANS = _wheel([" ".join(parts) for parts in product(words.SLOGAN_STARTS, words.SLOGAN_MANNERS, words.SLOGAN_ENDS)])
_INDUSTRIES = _wheel(words.INDUSTRIES)
_FOLDERS = _wheel(words.AVATAR_FOLDERS)
_PROFESSIONS = _wheel(words.PROFESSIONS)
_FIELDS = _wheel(words.FIELDS)
_ZONES = _wheel(words.TIME_ZONES)
_AGENTS = _wheel(words.USER_AGENTS)


def _user(number: int, draws: tuple[int, ...]) -> GeneratedUser:
    (digits, person, john, avatar, credit, pack,
     provider, card, company, slogan, industry, folder, profession, field, premium, zone, agent) = draws  # fmt: skip
    name, mailbox = _PEOPLE[person % len(_PEOPLE)] if john % 10 else _JOHN_DOE
    return GeneratedUser(
        f"{mailbox}.{number}@{_PROVIDERS[provider]}",
        f"{_CARDS[card]}{1_000_000_000 + digits}",
        _COMPANIES[company],
        _SLOGANS[slogan],
        _INDUSTRIES[industry],
        f"{mailbox}{number}",
        f"{_FOLDERS[folder]}{number}.png" if avatar % 10 else "example.org",
        name,
        _PROFESSIONS[profession],
        _FIELDS[field],
        premium < 128,
        credit % 40 - 20,
        _ZONES[zone],
        _AGENTS[agent],
        "small" if pack % 10 else "free",
    )
