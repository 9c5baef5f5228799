"""What Java is told about certificate authorities and proxies."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from lastword.jvm.jvm_trust_store import proxy_options, trust_options, trusted_by_python


def test_no_proxy_means_no_option() -> None:
    assert proxy_options({}) == ()
    assert proxy_options({"http": "http://proxy:3128"}) == ()


@pytest.mark.parametrize("address", ["http://proxy.example:3128", "http://proxy.example:3128/", "proxy.example:3128"])
def test_a_proxy_is_given_by_host_and_port(address: str) -> None:
    assert proxy_options({"https": address}) == ("-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128")


def test_a_proxy_without_a_port_listens_at_80() -> None:
    assert proxy_options({"all": "http://proxy.example"})[1] == "-Dhttps.proxyPort=80"


def test_no_proxy_names_hosts_and_their_subdomains() -> None:
    options = proxy_options({"https": "proxy:1", "no": "localhost, .corp.example"})

    assert options[2:] == ("-Dhttp.nonProxyHosts=localhost|*.localhost|corp.example|*.corp.example",)


def test_a_star_in_no_proxy_switches_the_proxy_off() -> None:
    assert proxy_options({"https": "proxy:1", "no": "*"}) == ()


def test_credentials_are_decoded_and_allowed_into_a_tunnel() -> None:
    assert proxy_options({"https": "http://ann:p%40ss@proxy:1"})[2:] == (
        "-Djdk.http.auth.tunneling.disabledSchemes=",
        "-Dhttp.proxyUser=ann",
        "-Dhttp.proxyPassword=p@ss",
    )


def test_nobody_trusted_leaves_java_with_its_own_trust_store(tmp_path: Path) -> None:
    assert trust_options(tmp_path, ()) == ()
    assert list(tmp_path.iterdir()) == []


def test_certificates_of_a_folder_are_found_though_python_does_not_list_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    someone = trusted_by_python()[0]
    (tmp_path / "12ab34cd.0").write_text(ssl.DER_cert_to_PEM_cert(someone))
    (tmp_path / "99ab34cd.0").write_text("not a certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))

    assert trusted_by_python() == (someone,)
