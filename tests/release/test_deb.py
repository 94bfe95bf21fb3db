"""The package: a shop in two commands on Debian 12 and 13, which outlives upgrade and removal."""

import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from btcpay import __version__
from tests.support.builders import new_xpub, until
from tests.support.chroots import MADE_WITHIN_S, PLACE, base, outside, unpacked
from tests.support.programs import done
from tests.support.wheel import copy_sources

UNIT = Path("usr/lib/systemd/system/blocktill.service")
SUITES = {"bookworm": "3.11", "trixie": "3.13"}
ENV = Path("etc/blocktill.env")
STATE = Path("var/lib/blocktill")
OPT = Path("opt/blocktill")
ANSWER = "echo 'blocktill blocktill/remove-data boolean true' | debconf-set-selections"


@pytest.fixture(scope="module", params=SUITES)
def built(request):
    """A system, and in it the package that it has built of this tree, and a newer one."""
    with tempfile.TemporaryDirectory(dir=PLACE) as name:
        folder = Path(name)
        archive = base(request.param, folder)
        builder = unpacked(archive, folder / "builder")
        copy_sources(builder.root / "src")
        builder.run(
            "make", "--silent", "--directory=/src", "deb", "PYTHON=/usr/bin/python3"
        )
        (package,) = (builder.root / "src/dist").glob("*.deb")
        system = unpacked(archive, folder / "system")
        old = package.rename(system.root / package.name)
        yield system, old, newer(old, folder / "newer"), SUITES[request.param]


def newer(package, folder):
    """The package as the next version will be."""
    done(["dpkg-deb", "--raw-extract", package, folder])
    (program,) = folder.glob(f"{OPT}/lib/python3.*/site-packages/btcpay/__init__.py")
    for file in (program, folder / "DEBIAN/control"):
        file.write_text(file.read_text().replace(__version__, "9.9.9"))
    (folder / "opt/blocktill/added").touch()
    made = package.with_name(package.name.replace(__version__, "9.9.9"))
    done(["dpkg-deb", "--root-owner-group", "-Znone", "--build", folder, made])
    return made


def test_dpkg_and_lintian_take_the_package(built):
    _, package, _, python = built
    assert re.fullmatch(
        rf"blocktill_{__version__}\+debian1\d_[a-z0-9]+\.deb", package.name
    )
    done(["lintian", "--allow-root", "--fail-on=error", package], timeout=MADE_WITHIN_S)
    said = done(["dpkg-deb", "--info", package])
    major, minor = python.split(".")
    assert f"python3 (>= {python}~), python3 (<< {major}.{int(minor) + 1}~)" in said
    files = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", package], capture_output=True
    ).stdout
    assert files and b"/tmp/tmp." not in files  # where it was made


def test_a_shop_in_two_commands_outlives_upgrade_removal_and_purge(built, tmp_path):
    system, old, new, _ = built
    install = ["apt-get", "install", "--yes", "--no-install-recommends"]
    with outside(tmp_path) as around:
        (system.root / OPT).mkdir()
        (system.root / OPT / "pyvenv.cfg").touch()
        system.run("apt-get", "--quiet", "update")
        assert "move it away first" in system.run(*install, f"/{old.name}", status=100)
        (system.root / OPT / "pyvenv.cfg").unlink()

        system.run(*install, f"/{old.name}")
        assert f"version {__version__}\n" in system.run("blocktill", "--version")
        assert "blocktill merchant" in system.run(
            "zcat", "/usr/share/man/man1/blocktill.1.gz"
        )
        assert "/etc/blocktill.env run\n" in (system.root / UNIT).read_text()
        lines = [f"{name}={value}\n" for name, value in around.settings.items()]
        (system.root / ENV).write_text("".join(lines))
        options = ["--network", "regtest", "--base-url", around.url, "--yes"]
        system.run("blocktill", "setup", *options)
        merchant = ["merchant", "add", "My shop", "--xpub", new_xpub(), "--yes"]
        system.run("blocktill", *merchant)
        said = system.run("blocktill", "key", "issue", "My shop", "--scope", "write")
        served = replace(system, user="blocktill:blocktill")
        run = ["blocktill", "--env-file", f"/{ENV}", "run"]
        with served.running(around.url, *run):
            assert "My shop" in system.run(
                "blocktill", "merchant", "list"
            )  # by root, of this shop
            invoice = around.order(said)
            around.pay(invoice)
            until(
                lambda: around.status(invoice) == "paid",
                "the check to see it",
                every_s=1,
            )
        settings = (system.root / ENV).read_text()
        kept = lambda: (system.root / STATE / "regtest.db").exists()  # noqa: E731

        system.run(*install, f"/{new.name}")
        assert "version 9.9.9\n" in system.run("blocktill", "--version")
        with served.running(around.url, *run):
            assert around.status(invoice) == "paid"
        system.run("apt-get", "remove", "--yes", "blocktill")
        assert not (system.root / OPT).exists()
        assert (system.root / ENV).read_text() == settings and kept()

        system.run(*install, f"/{new.name}")
        system.run("apt-get", "purge", "--yes", "blocktill")
        assert not (system.root / ENV).exists() and kept()
        system.run(*install, f"/{new.name}")
        system.run("sh", "-c", ANSWER)
        system.run("apt-get", "purge", "--yes", "blocktill")
        assert not (system.root / STATE).exists()
    assert "blocktill" not in system.run("dpkg", "--list")
