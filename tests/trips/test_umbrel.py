"""The app for Umbrel: its manifest, its container, and who reaches which page."""

import jsonschema_rs
import pytest
from PIL import Image

from btcpay import __version__
from btcpay.settings.settings import VARIABLES, read
from tests.support import umbrel
from tests.support.merchant_browser import ON, MerchantBrowser
from tests.support.merchant_paths import filled
from tests.support.paths import PROJECT, VECTORS
from tests.support.programs import done, tool
from tests.support.project import instructions

FOLDER = umbrel.APP.parent
NODE = {
    "APP_BITCOIN_NETWORK": "mainnet",
    "APP_BITCOIN_NODE_IP": "10.21.21.8",
    "APP_BITCOIN_P2P_PORT": "8333",
}
# The order in which Umbrel's own apps have them.
FIELDS = [
    "manifestVersion",
    "id",
    "category",
    "name",
    "version",
    "tagline",
    "description",
    "releaseNotes",
    "developer",
    "website",
    "dependencies",
    "repo",
    "support",
    "port",
    "gallery",
    "path",
    "defaultUsername",
    "defaultPassword",
    "deterministicPassword",
    "submitter",
    "submission",
]


@pytest.fixture(scope="module")
def manifest():
    return umbrel.read_yaml("umbrel-app.yml")


@pytest.fixture(scope="module")
def web():
    return umbrel.services()[umbrel.SERVICE]


def test_the_manifest_says_what_umbrel_wants_to_know(manifest):
    assert list(manifest) == FIELDS
    assert manifest["id"] == umbrel.APP.name and manifest["version"] == __version__
    assert manifest["dependencies"] == ["bitcoin"]
    assert manifest["deterministicPassword"] is True
    assert len(manifest["tagline"]) <= 100 and not manifest["tagline"].endswith(".")
    # A first submission has no notes; Umbrel makes the gallery of the pictures that it is sent.
    assert manifest["releaseNotes"] == "" and manifest["gallery"] == []


def test_the_proxy_finds_the_container_of_this_version(manifest, web):
    proxy = umbrel.services()["app_proxy"]
    assert set(umbrel.services()) == {"app_proxy", umbrel.SERVICE}
    assert set(proxy) == {"environment"} and "ports" not in web
    host = f"{manifest['id']}_{umbrel.SERVICE}_1"
    assert proxy["environment"]["APP_HOST"] == host
    bind = web["environment"]["BLOCKTILL_BIND"]
    assert bind == f"0.0.0.0:{proxy['environment']['APP_PORT']}"
    assert web["image"].rpartition(":")[2] == __version__


def test_what_is_submitted_has_the_image_by_its_digest(tmp_path):
    for name in ("Makefile", "deploy"):
        (tmp_path / name).symlink_to(PROJECT / name)
    digest = f"sha256:{'5a' * 32}"
    done([tool("make"), "umbrel", f"DIGEST={digest}"], cwd=tmp_path)
    made = tmp_path / "build/umbrel/blocktill"
    text = (umbrel.APP / "docker-compose.yml").read_text()
    image = f"{umbrel.services()[umbrel.SERVICE]['image']}"
    pinned = text.replace(image, f"{image}@{digest}")
    assert (made / "docker-compose.yml").read_text() == pinned != text
    assert {path.name for path in made.iterdir()} == {
        path.name for path in umbrel.APP.iterdir()
    }
    with pytest.raises(AssertionError, match="DIGEST=sha256"):
        done([tool("make"), "umbrel", "DIGEST=latest"], cwd=tmp_path)


def test_the_container_writes_nothing_but_its_folder_of_data(web):
    schema = (VECTORS / "compose-spec.json").read_text()
    compose = umbrel.read_yaml("docker-compose.yml")
    errors = jsonschema_rs.validator_for(schema).iter_errors(compose)
    assert [error.message for error in errors] == []
    assert (web["user"], web["read_only"], web["cap_drop"]) == (
        "1000:1000",
        True,
        ["ALL"],
    )
    (place,) = (words for name, words in instructions() if name == "VOLUME")
    assert web["volumes"] == [f"${{APP_DATA_DIR}}/data:{place}"]
    assert (umbrel.APP / "data/.gitkeep").is_file()


@pytest.mark.parametrize(
    ("more", "peer"),
    [
        ({"APP_BITCOIN_P2P_WHITEBIND_PORT": "8335"}, "10.21.21.8:8335"),
        ({}, "10.21.21.8:8333"),
    ],
    ids=["a node that trusts other apps", "an older node"],
)
def test_the_settings_are_the_platforms(more, peer, tmp_path, manifest):
    environ = umbrel.environment(tmp_path, **NODE, **more)
    assert set(environ) <= set(VARIABLES.values())
    settings = read(environ)
    assert settings.network.name == "mainnet"
    assert (settings.peers, settings.explorers) == ((peer,), ())
    assert settings.owner_password == umbrel.PASSWORD
    assert settings.base_url == f"http://{umbrel.DOMAIN}:{manifest['port']}"
    assert settings.database_url == "sqlite:////var/lib/blocktill/mainnet.db"


def test_a_public_address_in_the_folder_of_data_is_the_root_of_all_links(tmp_path):
    file = tmp_path / "public-address"
    file.write_text("https://pay.example.com\n")
    environ = umbrel.environment(tmp_path, **NODE)
    assert read(environ).base_url == "https://pay.example.com"
    file.write_text("")
    assert umbrel.base_url(tmp_path) == f"http://{umbrel.DOMAIN}:8378"


def is_the_owners(rule):
    """True for the front page and for all of /merchant but login links and the till."""
    if rule.startswith(("/merchant/login/", "/merchant/till")):
        return False
    return rule == "/" or rule.startswith(("/merchant", "/api-keys/authorize"))


@pytest.mark.parametrize("lets_pass", [umbrel.is_open, umbrel.was_open])
def test_customers_and_tills_need_no_login_of_umbrel_and_the_owner_does(
    lets_pass, open_shops
):
    """Every path that the service has, in umbrelOS as it is and as it was."""
    shop = open_shops(**ON, BLOCKTILL_GREENFIELD="on")
    rules = {rule.rule for rule in shop.app.url_map.iter_rules()}
    rules = {rule for rule in rules if not rule.endswith("/")} | {"/"}
    wrong = []
    for rule in rules:
        (path,) = filled(rule, ["some-id"])
        if lets_pass(path) == is_the_owners(rule):
            wrong.append(rule)
    assert wrong == [] and len(rules) > 100


@pytest.mark.parametrize("path", ["/pay/../merchant", "/merchant/till/../keys"])
def test_no_open_path_leads_to_one_that_is_not(path, open_shops):
    client = MerchantBrowser(open_shops(**ON)).log_in().client
    assert client.get("/merchant/keys").status_code == 200
    answer = client.get("/", environ_overrides={"PATH_INFO": path})
    assert answer.status_code == 404 and umbrel.is_open(path)


def test_the_pictures_for_the_store_have_its_size_and_are_small():
    files = sorted((FOLDER / "pictures").glob("*.png"))
    assert len(files) in (3, 4, 5)
    for file in files:
        assert Image.open(file).size == (1440, 900)
        assert file.stat().st_size < 150_000
    icon = (FOLDER / "icon.svg").read_text()
    assert 'width="256" height="256"' in icon and " rx=" not in icon
    assert icon.count('d="') == 1
    mark = (PROJECT / "btcpay/web/pages/static/icon.svg").read_text()
    assert icon.partition(' d="')[2] == mark.partition(' d="')[2]
