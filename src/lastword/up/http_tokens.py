"""The tokens for HTTP when the cluster asks for passwords, in a file that only its owner can read."""

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
    """The file for `serve --token-file`, and a token for reading; None if HTTP needs no token."""

    file: Path | None
    reading: str | None = field(repr=False)

    def curl(self, url: str) -> str:
        """A shell command that reads the URL. It does not contain the token: the list of processes would show it."""
        if self.file is None:
            return f"curl -s {url}"
        header = r's/^read \(.*\)/header = "Authorization: Bearer \1"/p'
        return f"sed -n '{header}' {quote(str(self.file))} | curl -s -K - {url}"


def http_tokens(folder: Path, *, is_locked: bool) -> HttpTokens:
    """The tokens in the file, or new ones if there is none."""
    if not is_locked:
        return HttpTokens(file=None, reading=None)
    private_folder(folder)
    file = folder / TOKENS
    if not file.exists():
        lines = [f"{what} {secrets.token_urlsafe(24)}\n" for what in ("read", "write")]
        write_durably(file, "".join(lines).encode())
    # A token for writing may read, too.
    return HttpTokens(file=file, reading=min(read_tokens(file))[1])
