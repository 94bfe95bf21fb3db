"""The rules of a release: what the commit must say, and what an index asks of the wheel."""

import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.metadata import Metadata
from packaging.version import Version
from readme_renderer import markdown

PROJECT = Path(__file__).resolve().parents[1]
CHECKLIST = "docs/developers/publishing.md"
AFTER = "\n## App stores"
OPEN_BOX = re.compile(r"^ *[-*] \[ \] \**([^.*\n]+)", re.M)
# What stands in these files until the project has a home.
PLACEHOLDERS = {
    "pyproject.toml": "//example.com/",
    "deploy/debian/control": "@example.com>",
}


def git(*words: str) -> str:
    """Runs git in the checkout, and returns its output. Raises CalledProcessError."""
    result = subprocess.run(
        ["git", *words], cwd=PROJECT, check=True, stdout=subprocess.PIPE
    )
    return result.stdout.decode().strip()


def mistakes_of_commit() -> Iterator[str]:
    """Yields each reason why the commit must not be released."""
    if git("status", "--porcelain"):
        yield "the checkout has changes: what is built is the commit, without them"
    version = version_of_commit()
    newest = re.search(r"^## (.+)$", committed("CHANGELOG.md"), re.M)[1]
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest):
        yield f"CHANGELOG.md begins with {newest!r}, not with '{version} (YEAR-MONTH-DAY)'"
    if version not in git("tag", "--points-at", "HEAD").splitlines():
        yield f"the commit has no tag {version}: git tag --sign {version}"
    yield from open_steps()


def committed(name: str) -> str:
    """Returns the text of a file in the commit."""
    return git("show", f"HEAD:{name}")


def version_of_commit() -> str:
    """Returns the version in the form that the wheel will have."""
    package = committed("btcpay/__init__.py")
    return str(Version(re.search('__version__ = "(.+)"', package)[1]))


def open_steps() -> Iterator[str]:
    """Yields what is still to do before anything of the project can be published.

    The boxes below AFTER can only be ticked once there is a release.
    """
    before, _, _ = committed(CHECKLIST).partition(AFTER)
    for step in OPEN_BOX.findall(before):
        yield f"{CHECKLIST} has an open box: {step}"
    for name, placeholder in PLACEHOLDERS.items():
        if placeholder in committed(name):
            yield f"{name} names example.com: the first step of {CHECKLIST}"


def mistakes_of_wheel(wheel: Path) -> Iterator[str]:
    """Yields each reason why an index would refuse the wheel, or could not show its page."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (name,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = archive.read(name)
    try:
        metadata = Metadata.from_email(text)
    except ExceptionGroup as errors:
        yield from (f"the metadata: {error}" for error in errors.exceptions)
        return
    if markdown.render(metadata.description or "") is None:
        yield "the description does not render"
