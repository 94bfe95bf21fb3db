"""Writes the project's home, and the image's name, into every file that repeats them.

    make home URL=https://HOST/OWNER/NAME [IMAGE=REGISTRY/OWNER/NAME]

The home is `Homepage` of pyproject.toml, the image's name IMAGE of the workflow `release`.
Both are replaced in all files of git but the tests, so that a later run finds them again.
If a name is refused, no file is changed, and the exit status is 2.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PYPROJECT = Path("pyproject.toml")
WORKFLOW = Path(".github/workflows/release.yml")
HOMEPAGE = re.compile(r'^Homepage = "(.+)"$', re.M)
IMAGE_NAME = re.compile(r"^  IMAGE: (.+)$", re.M)
HOST = r"[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?"
HOME = re.compile(rf"https://({HOST})((?:/[\w~][\w~.-]*)+(?<!\.))", re.A)
IMAGE = re.compile(rf"{HOST}(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+")
# They stand for the names while it is looked whether a new name is there already.
HOME_MARK = "\0home\0"
IMAGE_MARK = "\0image\0"


class NameRefused(Exception):
    """A name that cannot be the project's home or its image; the message says why."""


def check_home(url: str) -> str:
    """Returns the repository's URL without a slash at its end. Raises NameRefused."""
    url = url.rstrip("/")
    if not HOME.fullmatch(url) or url.endswith(".git"):
        raise NameRefused(
            f"URL={url!r}: give the repository's page, https://HOST/OWNER/NAME, without .git"
        )
    return url


def check_image(name: str) -> str:
    """Returns the image's name. Raises NameRefused."""
    if not IMAGE.fullmatch(name):
        raise NameRefused(
            f"IMAGE={name!r}: give REGISTRY/OWNER/NAME in small letters, without a tag"
        )
    return name


def default_image(home: str) -> str:
    """Returns the image's name that fits the home: GitHub's registry, or the home's host."""
    host, path = HOME.fullmatch(home).groups()
    if host == "github.com":
        host = "ghcr.io"
    return host + path.lower()


def home_pattern(home: str) -> re.Pattern[str]:
    return re.compile(re.escape(home) + r"(?![\w~-])")


def image_pattern(image: str) -> re.Pattern[str]:
    return re.compile(r"(?<![\w./-])" + re.escape(image) + r"(?![\w/-])")


def read_texts(folder: Path) -> dict[Path, str]:
    """Returns the text of each file of git, by its path in the folder.

    Leaves out the tests, symbolic links and what is not UTF-8.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", ".", ":!tests"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    texts = {}
    for name in listed.stdout.decode().split("\0"):
        path = folder / name
        if not path.is_file() or path.is_symlink():
            continue
        try:
            texts[Path(name)] = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
    return texts


def move(texts: dict[Path, str], home: str, image: str) -> dict[Path, str]:
    """Returns the new text of each file that changes.

    Raises NameRefused if a new name stands somewhere already: the next run could not
    tell it from the project's own.
    """
    old_home = home_pattern(HOMEPAGE.search(texts[PYPROJECT])[1])
    old_image = image_pattern(IMAGE_NAME.search(texts[WORKFLOW])[1])
    changed = {}
    for path, text in texts.items():
        marked = old_home.sub(HOME_MARK, text)
        marked = old_image.sub(IMAGE_MARK, marked)
        for pattern in (home_pattern(home), image_pattern(image)):
            taken = pattern.search(marked)
            if taken:
                raise NameRefused(f"{taken[0]} stands in {path} already, of another")
        new_text = marked.replace(HOME_MARK, home).replace(IMAGE_MARK, image)
        if new_text != text:
            changed[path] = new_text
    return changed


def main() -> int:
    """Moves the project to URL and IMAGE of the environment. Returns the exit status."""
    try:
        home = check_home(os.environ.get("URL", ""))
        image = check_image(os.environ.get("IMAGE") or default_image(home))
        changed = move(read_texts(PROJECT), home, image)
    except NameRefused as error:
        print(error, file=sys.stderr)
        return 2
    for path, text in changed.items():
        (PROJECT / path).write_bytes(text.encode())
        print(f"written: {path}")
    print(f"home:    {home}\nimage:   {image}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
