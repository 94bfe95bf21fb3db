"""The image: it is built on a bare Debian, and a shop runs in it whose root cannot be written."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from btcpay import __version__
from tests.support.builders import new_xpub, until
from tests.support.chroots import MADE_WITHIN_S, PLACE, TRUSTED, System, base, outside
from tests.support.paths import PROJECT


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
        root = buildah("mount", buildah("from", "--pull-never", "blocktill"))
        volume = folder / "volume"
        # as a new volume is made
        shutil.copytree(Path(root) / "var/lib/blocktill", volume)
        os.chown(volume, 10001, 10001)
        environ = dict(line.split("=", 1) for line in config["Env"])
        yield System(Path(root), environ, config["User"], volume), config


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
