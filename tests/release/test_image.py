"""The image: it is built on a bare Debian, and a shop runs in it whose root cannot be written."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
import requests

from btcpay import __version__
from tests.support import umbrel
from tests.support.browser import PHONE
from tests.support.builders import new_xpub, until
from tests.support.chroots import MADE_WITHIN_S, PLACE, TRUSTED, System, base, outside
from tests.support.mail_server import PASSWORD as MAIL_PASSWORD
from tests.support.mail_server import USER as MAIL_USER
from tests.support.mail_server import MailServer
from tests.support.paths import PROJECT
from tests.support.ports import free_port


@pytest.fixture(scope="module")
def image():
    """Its root as a system, and what its configuration says."""
    with tempfile.TemporaryDirectory(dir=PLACE) as name:
        folder = Path(name)
        store = [
            "--storage-driver=vfs",
            f"--root={folder}/store",
            f"--runroot={folder}/run",
        ]

        def buildah(*words):
            call = ["buildah", *store, *words]
            return subprocess.check_output(
                call, timeout=MADE_WITHIN_S, text=True
            ).strip()

        bare = buildah("from", "scratch")
        buildah("add", "--quiet", bare, base("trixie", folder), "/")
        buildah("copy", "--quiet", bare, TRUSTED, TRUSTED)
        buildah("commit", "--quiet", "--rm", bare, "localhost/base")
        words = ["--quiet", "--isolation=chroot", "--format=docker", "--tag=blocktill"]
        words += [
            "--build-arg=BASE=localhost/base",
            f"--file={PROJECT}/deploy/Dockerfile",
            PROJECT,
        ]
        buildah("bud", *words)
        config = json.loads(buildah("inspect", "--type=image", "blocktill"))["Docker"][
            "config"
        ]
        root = Path(buildah("mount", buildah("from", "--pull-never", "blocktill")))
        volume = new_volume(root, folder / "volume")
        environ = dict(line.split("=", 1) for line in config["Env"])
        yield System(root, environ, config["User"], volume), config


def new_volume(root, folder, user="10001:10001"):
    """A volume as a container makes it of what the image has there."""
    shutil.copytree(root / "var/lib/blocktill", folder)
    os.chown(folder, *map(int, user.split(":")))
    return folder


@pytest.fixture
def shop(image, tmp_path):
    """The image as a container of it runs: its words, and settings for the shop."""
    system, config = image
    with outside(tmp_path) as around:
        bind = around.url.removeprefix("http://")
        own = {
            "BLOCKTILL_BASE_URL": around.url,
            "BLOCKTILL_BIND": bind,
        } | around.settings
        words = ["env", f"--chdir={config['WorkingDir']}", *config["Entrypoint"]]
        environ = system.environ | own
        yield System(system.root, environ, system.user, system.volume), words, around


def test_the_images_command_prints_this_version(image):
    system, config = image
    assert f"blocktill, version {__version__}\n" in system.run(
        *config["Entrypoint"], "--version"
    )


def test_the_images_user_can_write_nothing_but_the_volume_and_tmp(image):
    system, _ = image
    assert system.user == "10001:10001"
    for place in ("/var/lib/blocktill", "/tmp"):
        system.run("touch", f"{place}/file")
    system.run("rm", "/var/lib/blocktill/file")
    as_root = System(system.root, system.environ, "0:0", system.volume)
    for place in ("/", "/opt/blocktill", "/etc"):
        assert "Read-only file system" in as_root.run(
            "touch", f"{place}/file", status=1
        )


def test_a_shop_of_one_command_sees_its_payment_and_a_restart_keeps_it(image, shop):
    (system, words, around) = shop
    (_, config) = image
    run = [*words, *config["Cmd"]]
    with system.running(around.url, *run) as log:
        assert f"To begin, open {around.url}/merchant/start/" in log.read_text()
        added = [*words, "merchant", "add", "My shop", "--xpub", new_xpub(), "--yes"]
        assert "bcrt1q" in system.run(*added)
        invoice = around.order(
            system.run(*words, "key", "issue", "My shop", "--scope", "write")
        )
        around.pay(invoice)
        until(
            lambda: around.status(invoice) == "paid",
            "the check to see the payment",
            every_s=1,
        )
    with system.running(around.url, *run) as log:
        assert around.status(invoice) == "paid"
        assert "To begin" not in log.read_text()
    assert (system.volume / "blocktill.db").stat().st_uid == 10001


PASSWORD = "Harbour pilots sleep late"


def test_the_image_runs_as_the_user_that_umbrel_gives_it(image, shop, tmp_path):
    """With its folder of data, whose owner that user is."""
    (system, words, around) = shop
    (_, config) = image
    user = umbrel.services()[umbrel.SERVICE]["user"]
    volume = new_volume(system.root, tmp_path / "data", user)
    environ = system.environ | {"BLOCKTILL_OWNER_PASSWORD": PASSWORD}
    theirs = System(system.root, environ, user, volume)
    with theirs.running(around.url, *words, *config["Cmd"]) as log:
        assert f"To begin, open {around.url}/merchant, with" in log.read_text()
        answer = requests.post(
            f"{around.url}/merchant/login", data={"password": PASSWORD}, timeout=60
        )
        assert "/merchant/start/" in answer.url
    uid, _, gid = user.partition(":")
    found = (volume / "blocktill.db").stat()
    assert (found.st_uid, found.st_gid) == (int(uid), int(gid))


def press(tab, selector, then):
    tab.click(selector)
    tab.until(f"document.getElementById('{then}')")


def log_in(tab, url, then):
    tab.go(f"{url}/merchant")
    tab.until("document.getElementById('password')")
    tab.fill(password=PASSWORD)
    press(tab, "#log-in", then)


@pytest.fixture
def mail_server(tmp_path):
    with MailServer(tmp_path, login=True) as server:
        yield server


def set_mail_server(tab, mail_server):
    press(tab, "#to-do a[href*='/settings/mail-server']", "save")
    tab.fill(host="127.0.0.1", port=str(mail_server.port))
    tab.ask("document.getElementById('encryption').value = 'starttls'")
    tab.fill(user=MAIL_USER, password=MAIL_PASSWORD, sender="till@seller.de")
    press(tab, "#save", "test")


def send_test_mail(tab, mail_server, to):
    """The mail server takes it, from the user that was set."""
    tab.fill(to=to)
    press(tab, "#test", "outcome")
    assert tab.text("answer") == "250 OK"
    mail = mail_server.taken[-1]
    assert (mail.sender, mail.to) == ("till@seller.de", [to])
    assert mail.user == MAIL_USER


def sell_at_the_till(tab, around):
    """A customer pays what the till shows, and the till says so."""
    press(tab, "#sections a[href*='/till']", "keypad")
    for key in "25":
        tab.click(f"#keypad [data-key='{key}']")
    press(tab, "#show", "qr")
    address, amount = re.fullmatch(
        r"bitcoin:(\w+)\?amount=([0-9.]+)", tab.qr().text
    ).groups()
    amount_sats = round(Decimal(amount) * 10**8)
    around.pay({"deposit_address": address, "amount_sats": amount_sats})
    tab.until_state("paid")
    return address


@pytest.mark.filterwarnings("ignore:Requiring AUTH while")
def test_a_phone_makes_a_shop_and_takes_it_to_a_second_container(
    image, tmp_path, mail_server, open_tab
):
    """By the owner's password and a browser alone."""
    system, config = image
    words = ["env", f"--chdir={config['WorkingDir']}", *config["Entrypoint"]]
    words += config["Cmd"]
    with outside(tmp_path) as around:

        def container(name):
            url = f"http://127.0.0.1:{free_port()}"
            settings = around.settings | {
                "BLOCKTILL_BASE_URL": url,
                "BLOCKTILL_BIND": url.removeprefix("http://"),
                "BLOCKTILL_OWNER_PASSWORD": PASSWORD,
            }
            volume = new_volume(system.root, tmp_path / name)
            environ = system.environ | settings
            return url, System(system.root, environ, system.user, volume)

        url, first = container("first")
        with first.running(url, *words):
            tab = open_tab(url, size=PHONE)
            log_in(tab, url, then="continue")
            tab.fill(name="Harbour Roasters")
            press(tab, "#continue", "key")
            tab.fill(key=new_xpub())
            press(tab, "#continue", "scripts")
            press(tab, "#scripts button", "same")
            press(tab, "#same", "to-do")
            set_mail_server(tab, mail_server)
            send_test_mail(tab, mail_server, "owner@seller.de")
            paid_address = sell_at_the_till(tab, around)
            tab.go(f"{url}/merchant/sessions")
            tab.click("details.decision summary")
            tab.click("details.decision[open] button")
            tab.until("location.pathname.endsWith('/logged-out')")
            log_in(tab, url, then="to-do")
            tab.download_to(tmp_path)
            press(tab, "#to-do a[href*='/backup']", "download")
            tab.click("#download")
            (file,) = until(
                lambda: list(tmp_path.glob("blocktill-*.db")), "the download"
            )
        url, second = container("second")
        with second.running(url, *words):
            tab = open_tab(url, size=PHONE)
            log_in(tab, url, then="restore")
            press(tab, "#restore", "backup")
            tab.choose_file("#backup", file)
            press(tab, "#examine", "agree")
            assert paid_address in tab.ask("document.body.innerText")
            press(tab, "#agree", "service")
            tab.go(f"{url}/merchant/settings/mail-server")
            assert f"127.0.0.1:{mail_server.port}" in tab.text("place")
            assert tab.ask("document.getElementById('password').value") == ""
            assert MAIL_PASSWORD not in tab.ask("document.documentElement.outerHTML")
            send_test_mail(tab, mail_server, "heir@seller.de")
            assert len(mail_server.taken) == 2
            assert sell_at_the_till(tab, around) != paid_address
            tab.go(f"{url}/merchant/invoices")
            assert (
                tab.ask("document.querySelectorAll('[data-status=paid]').length") == 2
            )
        assert not list(tmp_path.glob("*/.*.blocktill"))
        assert not list(tmp_path.glob("*/.*restore*"))
