"""A server that speaks plain HTTP, then TLS."""

import pytest

from tests.support.fake_esplora import FakeEsplora
from tests.support.programs import certificate


@pytest.fixture(scope="package")
def certified(tmp_path_factory):
    """A certificate for 127.0.0.1 and a name in no DNS (RFC 2606)."""
    certificate(folder := tmp_path_factory.mktemp("certified"), "explorer.invalid")
    return folder


@pytest.fixture(params=["http", "https"])
def server(request, monkeypatch):
    """Its certificate is one that calls are to trust."""
    fake = FakeEsplora()
    if request.param == "https":
        folder = request.getfixturevalue("certified")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(folder / "fullchain.pem"))
        fake.secure(folder)
    with fake:
        yield fake
