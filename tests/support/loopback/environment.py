"""The environment of provider clients: keys of their own, and nothing that this machine knows."""

from pathlib import Path

import certifi
import pytest

from .providers import PROVIDERS

FOREIGN = ("GEMINI_API_KEY", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN")
"""What a machine may have set that a client would take for its own."""


def keys_alone(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Every provider's key, and no other way to one."""
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
    for each in PROVIDERS:
        for name, value in each.variables.items():
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(folder / "none"))
    # Each client reads all certificates of authorities there are, and the loopback has none.
    monkeypatch.setenv("SSL_CERT_FILE", str(_one_certificate(folder)))


def _one_certificate(folder: Path) -> Path:
    end = "-----END CERTIFICATE-----\n"
    first, _, _ = Path(certifi.where()).read_text("ascii", "replace").partition(end)
    path = folder / "certificate.pem"
    path.write_text(first[first.index("-----BEGIN") :] + end)
    return path
