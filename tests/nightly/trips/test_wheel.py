"""The wheel, installed outside the checkout: it is whole, and what README promises runs from it."""

import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import pytest
import requests
from packaging.metadata import Metadata
from readme_renderer import markdown

from btcpay import __version__
from tests.support.paths import PROJECT
from tests.support.playground import start_playground
from tests.support.programs import UV, asked, done
from tests.support.project import copied
from tests.support.wheel import BUILD, BUILT_WITHIN_S, build, files_of, names_of


@dataclass(frozen=True)
class Built:
    """The built files, and the folder of their sources."""

    sdist: Path
    wheel: Path
    source: Path

    def metadata(self):
        with zipfile.ZipFile(self.wheel) as archive:
            return archive.read(f"blocktill-{__version__}.dist-info/METADATA")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    return Built(*build(folder), folder / "source")


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The programs of an environment that has the wheel and what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    done([UV, "venv", "--quiet", "--clear", "--python", sys.executable, folder])
    ended = asked([UV, "pip", "install", "--quiet", "--python", folder, built.wheel])
    assert ended.returncode == 0, ended.stderr
    return folder / "bin"


def test_the_sdist_leads_to_the_wheel_that_the_checkout_leads_to(built, tmp_path):
    done(
        [*BUILD, "--wheel", "--outdir", tmp_path, built.source], timeout=BUILT_WITHIN_S
    )
    (direct,) = tmp_path.glob("*.whl")
    assert files_of(direct) == files_of(built.wheel)


def test_the_sdist_can_be_read_tested_and_released(built):
    names = names_of(built.sdist)
    wanted = {
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "Makefile",
        "setup.cfg",
        ".editorconfig",
        "deploy/gunicorn.conf.py",
    }
    wanted |= {
        "docs/developers/settlement.md",
        "deploy/Dockerfile",
        "requirements.txt",
        ".ci/run",
    }
    wanted |= {
        "tests/conftest.py",
        "tests/support/forge.py",
        "tests/vectors/bip_vectors.json",
    }
    assert wanted - names == set()
    strange = ("node_modules", "__pycache__", ".venv", "var/")
    assert [name for name in names if any(word in name for word in strange)] == []


def test_what_the_wheel_says_of_itself_is_valid_and_its_page_renders(built):
    said = Metadata.from_email(built.metadata(), validate=True)
    assert (said.name, str(said.version)) == ("blocktill", __version__)
    assert (said.license_expression, said.license_files) == ("MIT", ["LICENSE"])
    assert said.provides_extra == ["postgres", "redis", "socks"]
    assert said.description_content_type == "text/markdown"
    page = markdown.render(said.description)
    assert page and "<h1 " in page and "<table>" in page


def test_every_link_of_the_page_is_whole(built):
    """There it stands alone: what is relative would lead nowhere."""
    page = markdown.render(message_from_bytes(built.metadata()).get_payload())
    links = [part.partition('"')[0] for part in page.split('href="')[1:]]
    assert (
        links
        and [link for link in links if not link.startswith(("https://", "#"))] == []
    )
    assert "<img" not in page


def test_what_the_image_copies_is_all_that_the_wheel_is_made_of(built, tmp_path):
    """The same files in a folder of their own lead to the same wheel as the whole checkout."""
    root = tmp_path / "build"
    for sources, target in copied():
        for source in (path for pattern in sources for path in PROJECT.glob(pattern)):
            place = root / target / source.name if source.is_file() else root / target
            place.parent.mkdir(parents=True, exist_ok=True)
            if source.is_file():
                shutil.copy(source, place)
            else:
                shutil.copytree(
                    source, place, ignore=shutil.ignore_patterns("__pycache__")
                )
    done([*BUILD, "--wheel", "--outdir", tmp_path, root], timeout=BUILT_WITHIN_S)
    (made,) = tmp_path.glob("*.whl")
    assert files_of(made) == files_of(built.wheel)


def test_what_is_installed_fits_together(installed):
    assert "All installed packages are compatible" in done(
        [UV, "pip", "check", "--python", installed / "python"]
    )


def test_the_wheel_needs_no_driver_of_a_database_server(installed, tmp_path):
    said = done([installed / "blocktill", "--version"], cwd=tmp_path)
    assert f"blocktill, version {__version__}\n" in said
    driver = subprocess.run(
        [installed / "python", "-c", "import psycopg"], capture_output=True
    )
    assert b"No module named 'psycopg'" in driver.stderr


def test_in_an_empty_folder_the_sandbox_starts_and_an_invoice_is_paid(
    installed, tmp_path
):
    program = [str(installed / "blocktill")]
    started = start_playground(tmp_path, cwd=tmp_path, program=program)
    try:
        invoice = started.post("/invoices", {"amount_usd": 25})
        assert requests.get(invoice["pay_url"], timeout=60).status_code == 200
        started.pay(invoice)
        started.press("mine")
        assert started.wait_for_status(invoice, "paid")["paid_at"]
    finally:
        assert started.stop() == 0
