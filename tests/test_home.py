"""`make home`: one address of the project, and one name of its image, wherever they are written."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import home
import pytest

from tests.support.paths import PROJECT
from tests.support.programs import done, tool
from tests.support.project import METADATA

HOME = METADATA["urls"]["Homepage"]
IMAGE = home.IMAGE_NAME.search((PROJECT / home.WORKFLOW).read_text())[1]
FIRST = ("https://example.org/x", "example.org/x")
SECOND = ("https://github.com/Me/Blocktill", "ghcr.io/me/blocktill")
# They are read outside the repository too, or by machines: the address stands there in full.
WITH_HOME = {
    ".github/ISSUE_TEMPLATE/config.yml",
    ".github/workflows/release.yml",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "deploy/Dockerfile",
    "deploy/startos/startos/manifest/index.ts",
    "deploy/umbrel/blocktill/umbrel-app.yml",
    "docs/developers/quickstart.md",
    "docs/operators/install.md",
    "docs/zensical.toml",
    "pyproject.toml",
}
WITH_IMAGE = {
    ".github/workflows/release.yml",
    "deploy/startos/startos/manifest/index.ts",
    "deploy/umbrel/blocktill/docker-compose.yml",
    "docs/operators/install.md",
}


def names(pattern, texts):
    return {path.as_posix() for path, text in texts.items() if pattern.search(text)}


@pytest.fixture
def clone(tmp_path):
    """The files of git as they stand now, in a repository of their own."""
    listed = done([tool("git"), "ls-files", "-z", "--", ".", ":!tests"], cwd=PROJECT)
    for name in listed.split("\0"):
        if (PROJECT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, tmp_path / name)
    done([tool("git"), "init", "-q"], cwd=tmp_path)
    done([tool("git"), "add", "-A"], cwd=tmp_path)
    return tmp_path


def make_home(clone, *words):
    # The tests may have been started by make: this one is no part of it.
    of_make = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    environ = {name: value for name, value in os.environ.items() if name not in of_make}
    return subprocess.run(
        ["make", "home", *words],
        cwd=clone,
        env=environ,
        capture_output=True,
        text=True,
    )


def test_the_home_and_the_image_stand_in_these_files():
    texts = home.read_texts(PROJECT)
    assert names(home.home_pattern(HOME), texts) == WITH_HOME
    assert names(home.image_pattern(IMAGE), texts) == WITH_IMAGE


def test_whatever_names_the_home_names_a_file_or_a_page_of_it():
    """On its forge `blob/main/` is the newest text of a file."""
    forge = {
        "",
        ".git",
        "/actions/workflows/tests.yml",
        "/issues",
        "/security/advisories/new",
        "/blob/$GITHUB_REF_NAME/CHANGELOG.md",
    }
    wrong = []
    for text in home.read_texts(PROJECT).values():
        for rest in re.findall(re.escape(HOME) + r"([\w./$-]*)", text):
            path = rest.removeprefix("/blob/main/")
            if rest not in forge and (path == rest or not (PROJECT / path).is_file()):
                wrong.append(rest)
    assert wrong == []


@pytest.mark.slow
def test_each_run_moves_every_place_and_leaves_nothing_of_the_old_home():
    texts = home.read_texts(PROJECT)
    old = (HOME, IMAGE)
    for new in (FIRST, SECOND):
        texts |= home.move(texts, *new)
        assert names(home.home_pattern(new[0]), texts) == WITH_HOME
        assert names(home.image_pattern(new[1]), texts) == WITH_IMAGE
        assert names(home.home_pattern(old[0]), texts) == set()
        assert names(home.image_pattern(old[1]), texts) == set()
        assert home.move(texts, *new) == {}
        old = new


@pytest.mark.parametrize(("url", "image"), [FIRST, SECOND], ids=["a host", "GitHub"])
def test_the_image_is_named_after_the_home(url, image):
    assert home.check_image(home.default_image(url)) == image


@pytest.mark.slow
def test_make_home_writes_the_files_and_a_refused_name_changes_none(clone):
    registry = "registry.example.net:5000/a/b-c"
    ended = make_home(clone, f"URL={FIRST[0]}/", f"IMAGE={registry}")
    assert (ended.returncode, ended.stderr) == (0, "")
    texts = home.read_texts(clone)
    assert names(home.home_pattern(FIRST[0]), texts) == WITH_HOME
    assert names(home.image_pattern(registry), texts) == WITH_IMAGE
    for words, why in (
        (["URL=http://example.org/x"], "give the repository's page"),
        ([f"URL={FIRST[0]}", "IMAGE=blocktill"], "give REGISTRY/OWNER/NAME"),
        (["URL=https://pay.example.com/pay"], "stands in"),  # the documents' example
    ):
        ended = make_home(clone, *words)
        assert ended.returncode == 2 and why in ended.stderr
    assert home.read_texts(clone) == texts


REFUSED = {
    "nothing": "",
    "not https": "http://example.org/x",
    "another scheme": "git@github.com:me/blocktill",
    "no path": "https://example.org",
    "a host without a dot": "https://localhost/x",
    "a query": "https://example.org/x?y",
    "a user": "https://me@example.org/x",
    "a blank": "https://example.org/x y",
    "a line": "https://example.org/x\ny",
    "a quotation mark": 'https://example.org/x"',
    "a step up": "https://example.org/x/../y",
    "a full stop at the end": "https://example.org/x.",
    "the address of the clone": "https://example.org/x.git",
}


@pytest.mark.parametrize("url", REFUSED.values(), ids=REFUSED)
def test_what_is_no_address_of_a_repository_is_refused(url):
    with pytest.raises(home.NameRefused, match="URL="):
        home.check_home(url)


@pytest.mark.parametrize(
    "name",
    [
        "blocktill",
        "ghcr.io",
        "ghcr.io/Me/x",
        "ghcr.io/me/x:1",
        "https://ghcr.io/me/x",
        "",
    ],
)
def test_what_is_no_name_of_an_image_is_refused(name):
    with pytest.raises(home.NameRefused, match="IMAGE="):
        home.check_image(name)


def test_a_home_below_or_above_the_old_one_is_found_again():
    texts = {
        home.PYPROJECT: 'Homepage = "https://example.org/x"\nMore = "https://example.org/x/y"\n',
        home.WORKFLOW: "  IMAGE: example.org/x\n",
    }
    below = texts | home.move(texts, "https://example.org/x/z", "example.org/x/z")
    assert below[home.PYPROJECT].endswith('"https://example.org/x/z/y"\n')
    assert below | home.move(below, *FIRST) == texts


def test_an_address_that_is_another_s_already_is_refused():
    texts = {
        home.PYPROJECT: 'Homepage = "https://example.org/x"\n',
        home.WORKFLOW: "  IMAGE: example.org/x\n",
        Path("README.md"): "The wallet: https://example.net/wallet.",
    }
    with pytest.raises(home.NameRefused, match=r"in README\.md already"):
        home.move(texts, "https://example.net/wallet", "example.net/w")
