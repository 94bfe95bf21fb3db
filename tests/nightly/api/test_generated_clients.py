"""Clients that generators make of the API's description do what a shop wants of them."""

import json
import shutil
import subprocess
import sys

import pytest
import requests

from tests.support.bitcoin_node import why_not_installed
from tests.support.paths import TESTS
from tests.support.programs import UV, asked, done

GENERATORS = TESTS / "nightly/api/generators"
PYTHON_GENERATOR = "openapi-python-client==0.29.1"


@pytest.fixture(scope="module")
def document(playground, tmp_path_factory):
    """The description, as the running service gives it."""
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_text(
        json.dumps(requests.get(f"{playground.api}/openapi.json", timeout=60).json())
    )
    return path


def test_a_python_client_makes_a_link_with_a_title_and_polls_an_invoice(
    playground, document, tmp_path
):
    programs = tmp_path / "venv/bin"
    done([UV, "venv", "--quiet", "--python", sys.executable, programs.parent])
    ended = asked(
        [UV, "pip", "install", "--quiet", "-p", programs.parent, PYTHON_GENERATOR]
    )
    assert ended.returncode == 0, ended.stderr
    words = ["generate", "--path", document, "--output-path", tmp_path / "client"]
    words += ["--meta", "setup", "--fail-on-warning"]
    done([programs / "openapi-python-client", *words], env={"PATH": str(programs)})
    shop = subprocess.Popen(
        [
            programs / "python",
            GENERATORS / "shop.py",
            playground.service,
            playground.key,
        ],
        env={"PYTHONPATH": str(tmp_path / "client")},
        stdout=subprocess.PIPE,
        text=True,
    )
    address, sats = shop.stdout.readline().split()
    playground.pay({"deposit_address": address, "amount_sats": int(sats)})
    playground.press("mine")
    assert shop.communicate(timeout=120) == ("Tip jar paid 0\n", None)
    assert shop.returncode == 0


def test_typescript_types_and_a_client_make_links_with_titles_and_poll_an_invoice(
    playground, document, tmp_path
):
    if reason := why_not_installed(GENERATORS):
        pytest.skip(reason)
    programs = GENERATORS / "node_modules/.bin"
    done([programs / "openapi-typescript", document, "-o", tmp_path / "types.ts"])
    words = ["-i", document, "-o", tmp_path / "client", "-c", "@hey-api/client-fetch"]
    done([programs / "openapi-ts", *words])
    shutil.copy(GENERATORS / "shop.ts", tmp_path)
    words = [
        "--strict",
        "--module",
        "commonjs",
        "--target",
        "es2022",
        "--lib",
        "es2022,dom",
    ]
    words += [
        "--skipLibCheck",
        "--typeRoots",
        tmp_path / "none",
        "--outDir",
        tmp_path / "made",
    ]
    done([programs / "tsc", *words, tmp_path / "shop.ts"])
    invoice = playground.post("/invoices", {"amount_usd": 25})
    said = done(["node", tmp_path / "made/shop.js", playground.service, playground.key])
    assert (said, invoice["status"]) == ("Tip jar Mug open open\n", "open")
