"""The words that generated users are made of. A word that is listed twice is drawn twice as often."""

# ruff: noqa: SIM905 - names are read as lines of words, not as columns of quotes
from __future__ import annotations

FIRST_NAMES = (
    "Ada Amara Anton Beatriz Carlos Chidi Clara Dagny Emil Farah Felix Giulia Hana Henrik Ines Ivo Jana Jonas José "
    "Jürgen Kamal Karin Leila Linus Mara Mateo Mei Milan Nadia Nils Noor Olga Oscar Paula Pedro Priya Rosa Samir "
    "Selma Sofia Tariq Tomas Ulla Vera Viktor Wanda Yuki Zoë"
).split()
# No Doe among them: every tenth user is John Doe, and no other.
LAST_NAMES = (
    "Abbott Almeida Andersson Bauer Becker Bianchi Castro Chen Cohen Dubois Eklund Farkas Ferrari Fischer Garcia "
    "Haddad Hansen Ito Ivanov Jansen Kaur Keller Khan Kovacs Larsen Lopez Mbeki Meyer Moreau Nakamura Novak O'Neill "
    "Okafor Olsen Patel Peeters Petrov Quinn Rossi Sato Schmidt Silva Singh Tanaka Torres Virtanen Weber Yilmaz"
).split()

# Under a domain that is reserved for examples: nobody gets mail because of these.
EMAIL_PROVIDERS = (
    "gmail.example",
    "gmail.example",
    "gmail.example",
    "outlook.example",
    "outlook.example",
    "hotmail.example",
    "hotmail.co.example",
    "yahoo.example",
    "icloud.example",
    "proton.example",
    "fastmail.example",
    "gmx.example",
    "posteo.example",
    "work.example",
    "university.example",
    "mail.example",
)

# The first digits of a card; ten more follow, so American Express (34, 37) has 15 in all and Diners (36) 14.
CARD_PREFIXES = (
    "401200",
    "412345",
    "424242",
    "448700",
    "453900",
    "471600",
    "491600",
    "510510",
    "522200",
    "540500",
    "555500",
    "222100",
    "601100",
    "352800",
    "34343",
    "37144",
    "37828",
    "3622",
)

COMPANY_WORDS = (
    "Alder Amber Anchor Arrow Aspen Atlas Beacon Birch Cedar Cobalt Comet Copper Coral Delta Ember Falcon Granite "
    "Harbor Hazel Heron Indigo Juniper Lantern Maple Meridian Nimbus Orchard Quarry River Saffron Summit Willow"
).split()
COMPANY_KINDS = ("Group", "Holdings", "Labs", "Partners", "Works", "& Sons", "GmbH", "Ltd")

SLOGAN_STARTS = ("We simplify", "We deliver", "Trust in", "Built for")
SLOGAN_MANNERS = ("lasting", "honest", "seamless", "bold", "everyday", "local", "careful", "modern")
SLOGAN_ENDS = ("journeys", "results", "connections", "homes", "ideas", "moments", "values", "growth")

INDUSTRIES = (
    "Commercial Banks",
    "Savings Banks",
    "Consumer Finance",
    "Financial Services",
    "Life Insurance",
    "Property Insurers",
    "Investment Managers",
    "Accounting and Tax",
    "Capital Markets",
    "Computer Software",
    "Computer Manufacturing",
    "Internet Services",
    "Semiconductors",
    "Telecommunications Equipment",
    "Wireless Networks",
    "Health Insurance",
    "Home Healthcare",
    "Hospital Operators",
    "Medical Instruments",
    "Pharmaceuticals",
    "Biotechnology",
    "Veterinary Services",
    "Aerospace",
    "Agriculture",
    "Apparel",
    "Automobiles",
    "Beverages",
    "Building Materials",
    "Chemicals",
    "Education",
    "Electric Utilities",
    "Forest Products",
    "Hotels and Resorts",
    "Logistics",
    "Mining",
    "Oil and Gas",
    "Packaged Foods",
    "Publishing",
    "Railroads",
    "Restaurants",
    "Retail",
    "Waste Management",
)

PROFESSIONS = (
    "engineer",
    "engineer",
    "accountant",
    "architect",
    "baker",
    "carpenter",
    "chemist",
    "designer",
    "electrician",
    "farmer",
    "journalist",
    "lawyer",
    "nurse",
    "pilot",
    "teacher",
    "translator",
)
FIELDS = (
    "IT",
    "Technology",
    "Agriculture",
    "Arts",
    "Construction",
    "Education",
    "Energy",
    "Finance",
    "Health",
    "Hospitality",
    "Law",
    "Marketing",
    "Sales",
    "Transport",
)

TIME_ZONES = (
    "Africa/Cairo",
    "Africa/Lagos",
    "Africa/Nairobi",
    "America/Bogota",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Mexico_City",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Toronto",
    "Asia/Dubai",
    "Asia/Jakarta",
    "Asia/Kolkata",
    "Asia/Seoul",
    "Asia/Shanghai",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Atlantic/Reykjavik",
    "Australia/Perth",
    "Australia/Sydney",
    "Europe/Athens",
    "Europe/Berlin",
    "Europe/Copenhagen",
    "Europe/Lisbon",
    "Europe/London",
    "Europe/Madrid",
    "Europe/Paris",
    "Europe/Rome",
    "Europe/Warsaw",
    "Indian/Mauritius",
    "Pacific/Auckland",
)

USER_AGENTS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Edg/126.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:127.0) Gecko/20100101 Firefox/127.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/125.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Firefox/115.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14.5; rv:127.0) Gecko/20100101 Firefox/127.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Version/17.5 Mobile Safari/604.1",
    "Mozilla/5.0 (iPad; CPU OS 16_7 like Mac OS X) AppleWebKit/605.1.15 Version/16.6 Mobile Safari/604.1",
    "Mozilla/5.0 (Linux; Android 14; Mobile) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 13; Tablet; rv:127.0) Gecko/127.0 Firefox/127.0",
    "Opera/9.80 (Windows NT 6.1; U; en) Presto/2.12 Version/12.16",
    "curl/8.7.1",
    "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.0)",
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
    "Mozilla/5.0 (Windows NT 6.3; Trident/7.0; rv:11.0) like Gecko",
)

# Before the number of the user. One in twelve is not encrypted.
AVATAR_FOLDERS = (
    *("https://avatars.example.com/u/",) * 6,
    *("https://images.example.net/faces/",) * 5,
    "http://pictures.example.com/",
)
