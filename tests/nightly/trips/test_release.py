"""`make release`: the same bytes whoever builds them, and only what is one version goes out."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from btcpay import __version__
from tests.support.paths import PROJECT
from tests.support.programs import done, tool
from tests.support.wheel import copy_sources

DATED = f"## {__version__} (2026-12-01)"
CHECKLIST = "docs/developers/publishing.md"
CONTROL = "deploy/debian/control"
AT = {
    "GIT_COMMITTER_DATE": "2026-12-01T10:00:00Z",
    "GIT_AUTHOR_DATE": "2026-12-01T10:00:00Z",
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = copy_sources(tmp_path_factory.mktemp("tree") / "sources")
    prepare(folder)
    return folder


def prepare(folder):
    """Gives the tree a home, a maintainer and a checklist whose boxes are ticked."""
    done([tool("git"), "init", "-q"], cwd=folder)
    done([tool("git"), "add", "-A"], cwd=folder)
    done(["make", "home", "URL=https://github.com/me/blocktill"], cwd=folder)
    replace(folder / CONTROL, "packages@example.com", "me@my.name")
    # A store has nothing to show before there is a release.
    before = (folder / CHECKLIST).read_text().partition("## App stores")[0]
    replace(folder / CHECKLIST, before, before.replace("- [ ]", "- [x]"))


def replace(file, old, new, times=-1):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, times))


@pytest.fixture
def commit(tmp_path, sources):
    """Makes a checkout of the tree, of one commit that is fit to go out; each time the same one.

    `undo` is a file, and what of its text is replaced by what.
    """

    def commit(name, umask=0o022, tag=__version__, heading=DATED, undo=()):
        folder = shutil.copytree(sources, tmp_path / name)
        if undo:
            file, old, new = undo
            replace(folder / file, old, new, 1)
        log = folder / "CHANGELOG.md"
        log.write_text(
            re.sub(r"^## .*$", heading, log.read_text(), count=1, flags=re.M)
        )
        for words in (
            ["add", "-A"],
            ["commit", "-qm", "All"],
            ["tag", tag],
        ):
            who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
            environ = os.environ | AT | {"GIT_CONFIG_GLOBAL": os.devnull}
            done([tool("git"), *who, *words], cwd=folder, env=environ, umask=umask)
        return folder

    return commit


def release(folder, umask=0o022, **environ):
    words = [sys.executable, folder / ".ci" / "release.py"]
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=300,
        umask=umask,
        env=os.environ | environ,
    )


def assert_names_every_requirement(bill):
    """Of the files that `pip install --require-hashes` reads, each with all of its hashes."""
    pinned = set[str]()
    hashes = set[str]()
    for lock in ("", "/postgres", "/redis", "/socks"):
        text = (PROJECT / f"requirements{lock}.txt").read_text()
        pinned |= set(re.findall(r"^([\w.-]+==[^\s;]+)", text, re.M))
        hashes |= set(re.findall(r"sha256:([0-9a-f]{64})", text))
    components = bill["components"]
    assert {f"{one['name']}=={one['version']}" for one in components} == pinned
    assert {found["content"] for one in components for found in one["hashes"]} == hashes
    scopes = {one["name"]: one["scope"] for one in components}
    assert (scopes["flask"], scopes["redis"]) == ("required", "optional")
    assert bill["metadata"]["component"]["version"] == __version__
    assert bill["dependencies"][0]["dependsOn"] == [
        one["bom-ref"] for one in components
    ]


def test_two_builds_of_one_commit_are_the_same_bytes_and_may_go_out(commit, tmp_path):
    """Of two checkouts, one made elsewhere, later, by somebody who shows files to nobody."""
    first = release(commit("a"))
    elsewhere = {"TZ": "Asia/Tokyo", "LC_ALL": "C", "LANG": "C"}
    second = release(commit("b", umask=0o077), umask=0o077, **elsewhere)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    dist = tmp_path / "a/dist"
    assert {path.name: path.read_bytes() for path in dist.iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "b/dist").iterdir()
    }
    done(["/usr/bin/sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=dist)
    (bill,) = dist.glob("*.cdx.json")
    assert len((dist / "SHA256SUMS").read_text().splitlines()) == 3
    assert_names_every_requirement(json.loads(bill.read_text()))
    assert "uv publish dist/blocktill-" in first.stdout


NOT_YET = {
    "the changes are not dated": (
        {"heading": f"## {__version__} (unreleased)"},
        "CHANGELOG.md",
    ),
    "the changes are another version's": (
        {"heading": "## 9.9.9 (2026-12-01)"},
        "CHANGELOG.md",
    ),
    "the tag is another's": ({"tag": "9.9.9"}, f"the commit has no tag {__version__}"),
    "the checkout has changes": ({}, "the checkout has changes"),
    "a box of the checklist is open": (
        {"undo": (CHECKLIST, "- [x] **Signers", "- [ ] **Signers")},
        f"{CHECKLIST} has an open box: Signers\n",
    ),
    "the project has no home": (
        {"undo": ("pyproject.toml", "https://github.com/me", "https://example.com")},
        "pyproject.toml names example.com",
    ),
    "the package has no maintainer": (
        {"undo": (CONTROL, "me@my.name", "packages@example.com")},
        f"{CONTROL} names example.com",
    ),
}


@pytest.mark.parametrize("case", NOT_YET)
def test_what_is_not_one_version_does_not_go_out(case, commit):
    made, message = NOT_YET[case]
    folder = commit("a", **made)
    if not made:
        (folder / "README.md").write_text("changed\n")
    ended = release(folder)
    assert (ended.returncode, ended.stderr.count("not yet: ")) == (1, 1)
    assert message in ended.stderr and ended.stdout == ""
    assert not (folder / "dist").exists()
