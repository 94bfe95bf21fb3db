"""The package for StartOS: its own kit checks and builds it, and its settings are settings."""

import json

import pytest

from btcpay import __version__
from btcpay.settings.settings import VARIABLES, read
from tests.support import startos
from tests.support.bitcoin_node import why_not_installed
from tests.support.programs import done, tool
from tests.support.project import METADATA, instructions

SHORT, LONG = 80, 500  # characters of the descriptions that StartOS shows


@pytest.fixture(scope="module", autouse=True)
def kit():
    if reason := why_not_installed(startos.KIT):
        pytest.skip(reason)
    return startos.KIT / "node_modules"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return startos.copy(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def manifest(kit, package):
    """What StartOS reads of the package; its types are checked on the way."""
    words = [kit / ".bin/tsc", "--outDir", "built", "--module", "commonjs"]
    assert done([tool("node"), *words], cwd=package, timeout=300) == ""
    script = "console.log(JSON.stringify(require('./built/startos/index.js').manifest))"
    return json.loads(done([tool("node"), "-e", script], cwd=package))


def test_the_kits_lint_has_nothing_to_say(kit, package):
    runner = package / "node_modules/@start9labs/start-sdk/lint.mjs"
    assert done([tool("node"), runner], cwd=package, timeout=300) == ""


def test_the_manifest_names_this_version_and_the_home(manifest):
    assert manifest["version"] == f"{__version__}:0"
    image = manifest["images"]["blocktill"]
    assert image["source"]["dockerTag"].rpartition(":")[2] == __version__
    assert image["arch"] == ["x86_64", "aarch64"]
    assert manifest["license"] == METADATA["license"]
    homes = {manifest[name] for name in ("packageRepo", "upstreamRepo", "marketingUrl")}
    assert homes == {METADATA["urls"]["Homepage"]}
    assert len(manifest["description"]["short"]) <= SHORT
    assert len(manifest["description"]["long"]) <= LONG
    assert list(manifest["dependencies"]) == ["bitcoind"]


def test_the_settings_are_those_of_a_shop_on_the_node_of_the_machine():
    address = "https://lively-otter.local:62123"
    environ = startos.environment(address, "a password", "10.0.3.1:49153")
    assert set(environ) <= set(VARIABLES.values())
    settings = read(environ | {"BLOCKTILL_OWNER_PASSWORD": "a longer password"})
    assert settings.network.name == "mainnet" and settings.base_url == address
    assert (settings.peers, settings.explorers) == (("10.0.3.1:49153",), ())
    assert environ["BLOCKTILL_OWNER_PASSWORD"] == "a password"


def test_the_container_is_the_images():
    facts = startos.ask("[of.folder, of.user, `0.0.0.0:${of.port}`]")
    image = dict(instructions())
    volumes = [words for name, words in instructions() if name == "VOLUME"]
    assert facts[:2] == [*volumes, image["USER"]]
    assert f"BLOCKTILL_BIND={facts[2]}" in image["ENV"]
