"""Builds the release of the commit that is checked out, and says whether it may go out.

The same commit leads to the same bytes, whoever builds it, wherever and when.

1. The commit's files go into a folder of their own: nothing that lies about gets in.
2. The sdist has all of them, packed in order with the commit's time and without owners; the wheel
   is built from it.
3. A bill of materials names every requirement with its hashes; SHA256SUMS has the sums of all.
4. What a release must fulfil is checked; every mistake is told, and the exit status is 1.
5. Files, sums and the line that uploads them are printed. Nothing leaves this machine.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata
from readme_renderer import markdown

PROJECT = Path(__file__).resolve().parents[1]
WORK = PROJECT / "build" / "release"
DIST = PROJECT / "dist"
MODES = {True: 0o755, False: 0o644}  # by whether its owner may execute it
# What every shop installs, then what its extras do.
LOCKS = (
    "requirements.txt",
    "requirements/postgres.txt",
    "requirements/redis.txt",
    "requirements/socks.txt",
)
# A requirement with its version and hashes, as `make lock` writes them.
PINNED = re.compile(
    r"^([\w.-]+)==([^\s;\\]+)[^\n]*((?:\n    --hash=\S+(?: \\)?)+)", re.M
)


def git(*words: str) -> str:
    """The output of a git command in the checkout."""
    done = subprocess.run(
        ["git", *words], cwd=PROJECT, check=True, stdout=subprocess.PIPE
    )
    return done.stdout.decode().strip()


def export(commit: str) -> Path:
    """The folder of the commit's files."""
    shutil.rmtree(WORK, ignore_errors=True)
    source = WORK / "source"
    source.mkdir(parents=True)
    git("archive", "--output", str(WORK / "source.tar"), commit)
    unpack(WORK / "source.tar", source)
    return source


def unpack(file: Path, folder: Path) -> None:
    with tarfile.open(file) as archive:
        # Python 3.11.2 of Debian 12 has no filters, and needs none: we have packed this.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)


def settle(folder: Path, time: int) -> None:
    """Gives each file one time, and modes that no umask has touched."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(MODES[bool(path.stat().st_mode & 0o100)])
        os.utime(path, (time, time))


def list_all(source: Path) -> None:
    """Has the sdist of a folder take all that lies there: it can be read, tested and released."""
    (source / "MANIFEST.in").write_text("graft .\nglobal-exclude *.pyc\n")


def build(kind: str, source: Path, folder: Path, time: int) -> Path:
    """A `--sdist` or a `--wheel` of the sources, by the locked setuptools."""
    words = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        kind,
        "--outdir",
        folder,
        source,
    ]
    environ = os.environ | {"SOURCE_DATE_EPOCH": str(time)}
    ended = subprocess.run(words, env=environ, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)
    (built,) = folder.glob("*.tar.gz" if kind == "--sdist" else "*.whl")
    return built


def unpacked(sdist: Path, time: int) -> Path:
    """The folder that is in the sdist, with modes and times as they go out."""
    unpack(sdist, WORK / "sdist")
    (folder,) = (WORK / "sdist").iterdir()
    settle(folder, time)
    return folder


def pack(folder: Path, time: int) -> Path:
    """An sdist in which nothing depends on who packs it, where and when."""
    target = DIST / f"{folder.name}.tar.gz"
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=time) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            member = archive.gettarinfo(
                path, f"{folder.name}/{path.relative_to(folder)}"
            )
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = time
            with path.open("rb") as content:
                archive.addfile(member, content)
    return target


def bill(sources: Path, files: Sequence[Path], time: int) -> Path:
    """CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/): what these files need, and from where.

    A requirement has one hash for each file that may be installed of it; an extra's is optional.
    """
    version = re.search(
        '__version__ = "(.+)"', (sources / "btcpay/__init__.py").read_text()
    )[1]
    own = component(
        "blocktill",
        version,
        [hashlib.sha256(f.read_bytes()).hexdigest() for f in files],
    )
    needed: dict[str, dict[str, object]] = {}
    for name in LOCKS:
        text = (sources / name).read_text()
        for package, pinned, hashes in PINNED.findall(text):
            found = component(package, pinned, re.findall(r"sha256:(\w+)", hashes))
            needed.setdefault(
                package,
                found | {"scope": "required" if name == LOCKS[0] else "optional"},
            )
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own['hashes'][0]['content'])}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time, UTC).isoformat(),
            "component": own | {"type": "application"},
        },
        "components": list(needed.values()),
        "dependencies": [
            {
                "ref": own["bom-ref"],
                "dependsOn": [one["bom-ref"] for one in needed.values()],
            }
        ],
    }
    target = DIST / f"blocktill-{version}.cdx.json"
    target.write_text(json.dumps(made, indent=1) + "\n")
    return target


def component(name: str, version: str, hashes: Sequence[str]) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    found = [{"alg": "SHA-256", "content": one} for one in hashes]
    common = {"type": "library", "bom-ref": purl, "name": name, "version": version}
    return common | {"purl": purl, "hashes": found}


def mistakes(wheel: Path, sources: Path) -> Iterator[str]:
    """The reasons why these files are not a release."""
    if git("status", "--porcelain"):
        yield "the checkout has changes: what is built is the commit, without them"
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (
            name for name in archive.namelist() if name.endswith(".dist-info/METADATA")
        )
        said = archive.read(name)
    try:
        metadata = Metadata.from_email(said)
    except ExceptionGroup as errors:
        yield from (f"the metadata: {error}" for error in errors.exceptions)
        return
    version = str(metadata.version)
    newest = re.search(r"^## (.+)$", (sources / "CHANGELOG.md").read_text(), re.M)[1]
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest):
        yield f"CHANGELOG.md begins with {newest!r}, not with '{version} (YEAR-MONTH-DAY)'"
    if version not in git("tag", "--points-at", "HEAD").splitlines():
        yield f"the commit has no tag {version}: git tag --sign {version}"
    if markdown.render(metadata.description or "") is None:
        yield "the description does not render"


def main() -> int:
    """Builds, tells, and answers whether there was a mistake."""
    os.umask(0o022)  # what setuptools makes has the modes that it leaves
    time = int(git("log", "-1", "--format=%ct"))
    DIST.mkdir(exist_ok=True)
    source = export("HEAD")
    list_all(source)
    settle(source, time)
    sources = unpacked(build("--sdist", source, WORK, time), time)
    files = [pack(sources, time), build("--wheel", sources, WORK, time)]
    files[1] = Path(shutil.copy(files[1], DIST))
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in (*files, bill(sources, files, time))
    ]
    (DIST / "SHA256SUMS").write_text("".join(sums))
    print("in dist/, and in its SHA256SUMS:\n", *sums, sep="", end="")
    found = list(mistakes(files[1], sources))
    for mistake in found:
        print(f"not yet: {mistake}", file=sys.stderr)
    if found:
        return 1
    if "//example.com" in (sources / "pyproject.toml").read_text():
        print(
            "before:     a public home in pyproject.toml, SECURITY.md, docs/operators/install.md"
        )
    print(
        "to upload:  .venv/bin/uv publish",
        *(file.relative_to(PROJECT) for file in files),
    )
    print(
        f"and:        git push origin {git('tag', '--points-at', 'HEAD').splitlines()[0]}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
