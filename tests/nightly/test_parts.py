"""Each optional part is deleted from a copy of the project: what is left passes its tests."""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from paths import PROJECT
from programs import done, tool

from btcpay import PARTS

# The tests that meet a part most, from outside it; all others are imported at least.
NEAR = {
    "btcpay.parts.bills": ["checkout", "invoices"],
    "btcpay.parts.peers": ["chain", "health"],
    "btcpay.parts.sandbox_command": ["cli/test_command_json.py", "cli/test_messages.py"],
    "btcpay.parts.greenfield": ["merchants", "notify"],
    "btcpay.parts.merchant_pages": ["cli", "greenfield"],
    "btcpay.parts.refunds": ["exports", "notify"],
}
OF_THE_TREE = ["test_documents.py", "test_layers.py", "cli/test_program.py", "languages"]


def copied(folder):
    """The files of the project, as they are now, the node that tests run against, mypy's cache."""
    listed = done(["git", "ls-files", "-co", "--exclude-standard"], cwd=PROJECT)
    for name in filter(lambda name: (PROJECT / name).is_file(), listed.splitlines()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, folder / name)
    link(PROJECT / "tests/node/node_modules", folder / "tests/node/node_modules")
    if (PROJECT / ".mypy_cache").is_dir():
        shutil.copytree(PROJECT / ".mypy_cache", folder / ".mypy_cache")


def link(there, here):
    """Where it was installed: tests skip what is not, and .ci/run promises that it is."""
    if there.is_dir():
        here.symlink_to(there)


def delete(part, folder):
    """Its folder, its line, its tests, and what of tests/support imports it."""
    room = Path(*part.split(".")[1:])
    for place in ("btcpay", "tests", "tests/nightly"):
        shutil.rmtree(folder / place / room)
    for support in (folder / "tests/support").iterdir():
        if f"from {part}" in support.read_text():
            support.unlink()
    table = folder / "btcpay/__init__.py"
    before = table.read_text()
    table.write_text(before.replace(f'PARTS += ["{part}"]\n', ""))
    assert table.read_text() != before


def python_of(folder):
    """A virtualenv of the copy that has our libraries, without the way into our own tree.

    That way is a `.pth` file, since we are installed as editable. None is read in a folder that
    another `.pth` file names.
    """
    made = venv.EnvBuilder(symlinks=True)
    made.create(folder / ".venv")
    paths = made.ensure_directories(folder / ".venv")
    libraries = Path(sysconfig.get_path("purelib", vars={"base": paths.env_dir}))
    (libraries / "copy.pth").write_text(f"{folder}\n{sysconfig.get_path('purelib')}\n")
    link(Path(sys.prefix) / "sdk", Path(paths.env_dir) / "sdk")
    command = Path(paths.bin_path) / "blocktill"
    command.write_text(f"#!{paths.env_exe}\nfrom btcpay.cli.main import main\n\nmain()\n")
    command.chmod(0o755)
    return paths.env_exe


@pytest.mark.parametrize("part", PARTS)
def test_what_is_left_without_a_part_passes(part, tmp_path):
    copied(tmp_path)
    delete(part, tmp_path)
    python = python_of(tmp_path)
    # Plain, since the tests' files are compiled anew in each copy: that halves their import.
    run = [python, "-m", "pytest", "-q", "--assert=plain"]
    tests = [f"tests/{name}" for name in OF_THE_TREE + NEAR.get(part, [])]
    for words in (
        [tool("ruff"), "check", "--no-cache", "."],
        [tool("ruff"), "format", "--no-cache", "--check", "."],
        [python, "-m", "mypy"],
        [*run, "--collect-only", "tests", "tests/nightly"],
        [*run, "-x", *tests],
    ):
        done(words, timeout=300, cwd=tmp_path)
    assert subprocess.run([python, "-c", f"import {part}"], cwd=tmp_path).returncode == 1
