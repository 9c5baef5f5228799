"""Who may read and write over HTTP when everything is locked: tokens in a file that only its owner can read."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from lastword.core.durable import write_durably
from lastword.core.home import private_folder
from lastword.serve.http.tokens import read_tokens
from lastword.up.desired_state import TOKENS


@dataclass(frozen=True, kw_only=True)
class HttpTokens:
    """The file for `serve --token-file`, and a token that may read; None where nobody is asked for one."""

    file: Path | None
    reading: str | None = field(repr=False)

    def curl(self, url: str) -> str:
        """The shell command that reads the URL, without the token itself: the list of processes would show it."""
        if self.file is None:
            return f"curl -s {url}"
        header = r's/^read \(.*\)/header = "Authorization: Bearer \1"/p'
        return f"sed -n '{header}' {quote(str(self.file))} | curl -s -K - {url}"


def http_tokens(folder: Path, *, is_locked: bool) -> HttpTokens:
    """Those that are there, or new ones."""
    if not is_locked:
        return HttpTokens(file=None, reading=None)
    private_folder(folder)
    file = folder / TOKENS
    if not file.exists():
        lines = [f"{what} {secrets.token_urlsafe(24)}\n" for what in ("read", "write")]
        write_durably(file, "".join(lines).encode())
    # One that may write may read, too.
    return HttpTokens(file=file, reading=min(read_tokens(file))[1])
