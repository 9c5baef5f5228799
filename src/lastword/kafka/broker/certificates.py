"""Keys and certificates of a local cluster that speaks TLS, made with the keytool of its Java.

clusters/NAME/tls/ca.pem      the certificate that clients trust; another user of the machine needs a copy
clusters/NAME/tls/server.p12  the key of the brokers, all on this machine; only its owner can read it
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lastword.core.durable import sync
from lastword.core.errors import BrokerFailed
from lastword.jvm.java import Java

_DAYS = "3650"
_KEY = ("-keyalg", "EC", "-groupname", "secp256r1", "-validity", _DAYS)


def ca_certificate(folder: Path) -> Path:
    return folder / "tls" / "ca.pem"


def tls_settings(folder: Path, password: str) -> dict[str, str]:
    """The settings of brokers for their key and for the certificate that they trust."""
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "tls" / "server.p12"),
        "ssl.keystore.password": password,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(ca_certificate(folder)),
    }


def ensure_certificates(folder: Path, java: Java, password: str) -> None:
    """Makes the certificates if there are none: a certificate authority of this cluster, and a certificate by it."""
    finished, unfinished = folder / "tls", folder / "tls.new"
    if finished.exists():
        return
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    keytool = _Keytool(executable=java.executable.resolve().parent / "keytool", folder=unfinished, password=password)
    keytool("-genkeypair", "-alias", "ca", "-dname", "CN=lastword local cluster", "-ext", "bc:c", *_KEY, store="ca.p12")
    keytool("-exportcert", "-rfc", "-alias", "ca", "-file", "ca.pem", store="ca.p12")
    keytool("-genkeypair", "-alias", "server", "-dname", "CN=localhost", *_KEY, store="server.p12")
    keytool("-certreq", "-alias", "server", "-file", "server.csr", store="server.p12")
    names = ("-ext", "san=ip:127.0.0.1,dns:localhost", "-validity", _DAYS)
    keytool(
        "-gencert", "-rfc", "-alias", "ca", "-infile", "server.csr", "-outfile", "server.pem", *names, store="ca.p12"
    )
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", "ca.pem", store="server.p12")
    keytool("-importcert", "-noprompt", "-alias", "server", "-file", "server.pem", store="server.p12")
    # Nobody signs with the authority's key again.
    for name in ("ca.p12", "server.csr", "server.pem"):
        (unfinished / name).unlink()
    (unfinished / "server.p12").chmod(0o600)
    for name in ("ca.pem", "server.p12"):
        sync(unfinished / name)
    # Rename last: a folder of this name is complete.
    unfinished.replace(finished)
    sync(folder)


@dataclass(frozen=True, kw_only=True, repr=False)
class _Keytool:
    executable: Path
    folder: Path
    password: str

    def __call__(self, *words: str, store: str) -> None:
        """Runs keytool. The password is in its environment, which other users can't read, not on its command line."""
        command = [str(self.executable), *words, "-keystore", store, "-storetype", "PKCS12", "-storepass:env", "KEYS"]
        try:
            subprocess.run(
                command, cwd=self.folder, env={**os.environ, "KEYS": self.password}, check=True, capture_output=True
            )
        except OSError:
            raise BrokerFailed(
                f"{self.executable} does not run, and it makes certificates: set JAVA_HOME to a Java that has keytool"
            ) from None
        except subprocess.CalledProcessError as failure:
            output = failure.stdout.decode(errors="replace").strip()
            raise BrokerFailed(f"making certificates in {self.folder} failed: {output}") from None
