"""Each part's folder is deleted from a copy of the project: what is left passes its tests."""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from btcpay import hooks
from tests.support.paths import PROJECT
from tests.support.programs import done, tool

# The tests that meet a part most, from outside it; all others are imported at least.
NEAR = {
    "bills": ["checkout", "invoices"],
    "peers": ["chain", "health"],
    "sandbox_command": ["cli/test_command_json.py", "cli/test_messages.py"],
    "greenfield": ["merchants", "notify/test_kinds.py", "notify/test_stories.py"],
    "merchant_pages": ["cli", "parts/greenfield"],
    "refunds": ["exports", "notify/test_kinds.py", "notify/test_stories.py"],
}
OF_THE_TREE = [
    "test_documents.py",
    "test_layers.py",
    "cli/test_program.py",
    "languages",
]


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
    command.write_text(
        f"#!{paths.env_exe}\nfrom btcpay.cli.main import main\n\nmain()\n"
    )
    command.chmod(0o755)
    return paths.env_exe


@pytest.mark.parametrize("part", hooks.parts())
def test_what_is_left_without_a_part_passes(part, tmp_path):
    copied(tmp_path)
    shutil.rmtree(tmp_path / "btcpay/parts" / part)
    python = python_of(tmp_path)
    # Plain, since the tests' files are compiled anew in each copy: that halves their import.
    run = [python, "-m", "pytest", "-q", "--assert=plain"]
    tests = [f"tests/{name}" for name in OF_THE_TREE + NEAR.get(part, [])]
    for words in (
        [tool("ruff"), "check", "--no-cache", "."],
        [tool("ruff"), "format", "--no-cache", "--check", "."],
        [python, "-m", "mypy"],
        [python, ".ci/check_hooks.py"],
        [*run, "--collect-only", "tests", "tests/nightly"],
        [*run, "-x", *tests],
    ):
        done(words, timeout=1200, cwd=tmp_path)
    gone = [python, "-c", f"import btcpay.parts.{part}"]
    assert subprocess.run(gone, cwd=tmp_path).returncode == 1


REFUNDS = "btcpay/parts/refunds"
# A change that misspells a hook, and what then says so: the file, the texts before and after.
MISSPELT = {
    "a function": ("blocks.py", "matches=matches", "match=matches"),
    "an argument": (
        "blocks.py",
        "def keep_blocks(db: Database, height",
        "def keep_blocks(db: Database, hight",
    ),
    "an argument's type": ("merchant_views.py", "came_sats: int", "came_sats: str"),
    "a name in the list": ("__init__.py", "hooks.Blocks", "hooks.Block"),
    "a hook that is not listed": ("__init__.py", "    hooks.Blocks,\n", ""),
}


def refusal(folder):
    """What `make check` says of types and hooks; empty if it says nothing."""
    check = [[tool("mypy")], [python_of(folder), ".ci/check_hooks.py"]]
    runs = [
        subprocess.run(words, cwd=folder, capture_output=True, text=True)
        for words in check
    ]
    return "".join(run.stdout + run.stderr for run in runs if run.returncode)


@pytest.mark.parametrize("case", MISSPELT)
def test_a_part_that_misspells_a_hook_is_refused(case, tmp_path):
    copied(tmp_path)
    name, before, after = MISSPELT[case]
    file = tmp_path / REFUNDS / name
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    message = refusal(tmp_path)
    assert REFUNDS in message or "part refunds" in message


def test_a_module_of_a_hook_that_is_called_otherwise_is_refused(tmp_path):
    copied(tmp_path)
    (tmp_path / REFUNDS / "blocks.py").rename(tmp_path / REFUNDS / "block.py")
    assert "the part refunds lists Blocks, but has no blocks.py" in refusal(tmp_path)
