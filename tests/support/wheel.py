"""The wheel and the sdist of this tree, built in a folder of their own."""

import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import release

from tests.support.paths import PROJECT
from tests.support.programs import done

NO_SOURCES = (
    ".*_cache",
    ".git",
    ".hypothesis",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "var",
)
BUILT_WITHIN_S = 300  # on a machine that has much else to do
BUILD = [sys.executable, "-m", "build", "--no-isolation"]


def copy_sources(folder: Path) -> Path:
    """The tree as it stands, without what is made of it."""
    ignored = shutil.ignore_patterns(*NO_SOURCES, "*.egg-info", "node_modules")
    return shutil.copytree(PROJECT, folder, ignore=ignored)


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is made from it."""
    source = copy_sources(folder / "source")
    release.list_all(source)
    done([*BUILD, "--outdir", folder, source], timeout=BUILT_WITHIN_S)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def files_of(wheel: Path) -> dict[str, bytes]:
    """The program's files in a wheel: what is not of its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name: archive.read(name) for name in names}


def names_of(sdist: Path) -> set[str]:
    """The names of its files, without the folder that all lie in."""
    with tarfile.open(sdist) as archive:
        return {file.name.partition("/")[2] for file in archive if file.isfile()}
