"""Builds the release of the commit that is checked out, and checks whether it may go out.

The same commit gives the same bytes on every machine, at any time.

1. Check the commit. Print every mistake; if there is one, nothing is built, and the exit
   status is 1.
2. Export the commit's files to an empty folder.
3. Pack all of them into the sdist, sorted, with the commit's time and without owners.
   Build the wheel from the sdist.
4. Write a bill of materials with every requirement and its hashes, and SHA256SUMS of
   all files.
5. Check the wheel's metadata, as in 1.
6. Print the files, their sums and the command that uploads them. Nothing is uploaded.
"""

import gzip
import os
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from bill_of_materials import sha256_of, write_bill
from release_checks import (
    PROJECT,
    git,
    mistakes_of_commit,
    mistakes_of_wheel,
    version_of_commit,
)

WORK = PROJECT / "build" / "release"
DIST = PROJECT / "dist"
PATTERNS = {"--sdist": "*.tar.gz", "--wheel": "*.whl"}
READ_BY_ALL = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
FILE_MODE = READ_BY_ALL | stat.S_IWUSR
PROGRAM_MODE = FILE_MODE | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def export(commit: str) -> Path:
    """Exports the commit's files to a new folder, and returns the folder."""
    shutil.rmtree(WORK, ignore_errors=True)
    source = WORK / "source"
    source.mkdir(parents=True)
    git("archive", "--output", str(WORK / "source.tar"), commit)
    unpack(WORK / "source.tar", source)
    return source


def unpack(file: Path, folder: Path) -> None:
    with tarfile.open(file) as archive:
        # Python 3.11.2 (Debian 12) has no filters. None is needed: this script packed the archive.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)


def normalize(folder: Path, time: int) -> None:
    """Sets the time of each file to `time` (Unix seconds), and modes that ignore the umask."""
    for path in folder.rglob("*"):
        if path.is_file():
            mode = FILE_MODE
            if path.stat().st_mode & stat.S_IXUSR:
                mode = PROGRAM_MODE
            path.chmod(mode)
        os.utime(path, (time, time))


def list_all(source: Path) -> None:
    """Writes a MANIFEST.in with which the sdist contains all files of the folder."""
    (source / "MANIFEST.in").write_text("graft .\nglobal-exclude *.pyc\n")


def build(kind: str, source: Path, folder: Path, time: int) -> Path:
    """Builds a `--sdist` or a `--wheel` from the sources with the locked setuptools.

    Returns the file, which is in `folder`. Exits with the output if the build fails.
    """
    command = [sys.executable, "-m", "build", "--no-isolation", kind]
    command += ["--outdir", str(folder), str(source)]
    environ = os.environ | {"SOURCE_DATE_EPOCH": str(time)}
    result = subprocess.run(command, env=environ, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(result.stdout + result.stderr)
    (file,) = folder.glob(PATTERNS[kind])
    return file


def unpack_sdist(sdist: Path, time: int) -> Path:
    """Unpacks the sdist, normalizes the modes and times of its files, and returns the folder."""
    unpack(sdist, WORK / "sdist")
    (folder,) = (WORK / "sdist").iterdir()
    normalize(folder, time)
    return folder


def pack(folder: Path, time: int) -> Path:
    """Packs the folder into a reproducible sdist in dist/, and returns the file."""
    target = DIST / f"{folder.name}.tar.gz"
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=time) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(folder.rglob("*")):
            if not path.is_file():
                continue
            member = archive.gettarinfo(
                path, f"{folder.name}/{path.relative_to(folder)}"
            )
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = time
            with path.open("rb") as content:
                archive.addfile(member, content)
    return target


def has_printed(mistakes: Iterator[str]) -> bool:
    """Prints the mistakes. True if there was one."""
    messages = list(mistakes)
    for message in messages:
        print(f"not yet: {message}", file=sys.stderr)
    return bool(messages)


def build_all() -> tuple[Path, Path]:
    """Builds what goes out into dist/, prints the sums, and returns the sdist and the wheel."""
    time = int(git("log", "-1", "--format=%ct"))
    DIST.mkdir(exist_ok=True)
    source = export("HEAD")
    list_all(source)
    normalize(source, time)
    sources = unpack_sdist(build("--sdist", source, WORK, time), time)
    sdist = pack(sources, time)
    wheel = Path(shutil.copy(build("--wheel", sources, WORK, time), DIST))
    bill = write_bill(sources, DIST, [sdist, wheel], time)
    sums = [f"{sha256_of(file)}  {file.name}\n" for file in (sdist, wheel, bill)]
    (DIST / "SHA256SUMS").write_text("".join(sums))
    print("in dist/, and in its SHA256SUMS:\n", *sums, sep="", end="")
    return sdist, wheel


def main() -> int:
    """Builds the release and prints the result. Returns the exit status."""
    os.umask(OTHERS_WRITE)  # the umask decides the modes of setuptools' files
    if has_printed(mistakes_of_commit()):
        return 1
    sdist, wheel = build_all()
    if has_printed(mistakes_of_wheel(wheel)):
        return 1
    print(
        "to upload:  .venv/bin/uv publish",
        sdist.relative_to(PROJECT),
        wheel.relative_to(PROJECT),
    )
    print(f"and:        git push origin {version_of_commit()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
