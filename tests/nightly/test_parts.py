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

# What asks whether the part is there, and what runs the part's code most, from outside it. A part
# of which no other test knows has no row.
NEAR = {
    "bills": [
        "cli/test_lists_and_shows.py",
        "invoices/test_explain.py",
        "invoices/test_retention.py",
        "notify/test_kinds.py",
    ],
    "greenfield": [
        "merchants/test_business.py",
        "merchants/test_changes_at_once.py",
        "notify/test_kinds.py",
        "notify/test_stories.py",
    ],
    "merchant_pages": [
        "cli/test_messages.py",
        "parts/greenfield/test_connect.py",
        "web/test_process.py::test_nothing_but_gunicorns_own_loop_wakes_an_idle_worker",
    ],
    "peers": ["health/doctor/test_doctor.py", "http/test_connector.py"],
    "refunds": [
        "checkout/test_checkout_invoice.py",
        "cli/test_lists_and_shows.py",
        "exports/test_export.py",
        "notify/test_kinds.py",
        "notify/test_stories.py",
    ],
    "sandbox_command": ["cli/test_command_json.py", "cli/test_messages.py"],
}
OF_THE_TREE = [
    "test_documents.py",
    "test_layers.py",
    "cli/test_program.py",
    "storage/test_storage.py",
]
# What these folders test imports no hook and no part, so nothing can be missing there.
UNRELATED = [
    "bench",
    "bitcoin",
    "examples",
    "http",
    "languages",
    "prices",
    "proofs",
    "release",
    "sandbox",
    "scale",
    "schemas",
    "settings",
    "settlement",
    "values",
]
# In one process: all other modules of tests are imported, the chosen tests run.
RUN = """
import sys
import pytest

class Chosen:
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid.startswith(tuple(CHOSEN))]

sys.exit(pytest.main(OPTIONS, plugins=[Chosen()]))
"""


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


def program_of_the_tests_left(part):
    """A program that imports the tests which could need the part, and runs those nearest to it."""
    chosen = [f"tests/{name}" for name in OF_THE_TREE + NEAR.get(part, [])]
    assert [
        name for name in chosen if not (PROJECT / name.partition("::")[0]).exists()
    ] == []
    # Plain, since the tests' files are compiled anew in each copy: that halves their import.
    options = ["-q", "-x", "--assert=plain", "tests", "tests/nightly"]
    options += [f"--ignore=tests/{folder}" for folder in UNRELATED]
    return RUN.replace("CHOSEN", repr(chosen)).replace("OPTIONS", repr(options))


@pytest.mark.parametrize("part", hooks.parts())
def test_what_is_left_without_a_part_passes(part, tmp_path):
    copied(tmp_path)
    shutil.rmtree(tmp_path / "btcpay/parts" / part)
    python = python_of(tmp_path)
    for words in (
        [tool("ruff"), "check", "--no-cache", "."],
        [python, "-m", "mypy"],
        [python, ".ci/check_hooks.py"],
        [python, "-c", program_of_the_tests_left(part)],
    ):
        done(words, timeout=1200, cwd=tmp_path)
    gone = [python, "-c", f"import btcpay.parts.{part}"]
    assert subprocess.run(gone, cwd=tmp_path).returncode == 1


REFUNDS = "btcpay/parts/refunds"
# A change that misspells a hook: the file, the texts before and after.
MISSPELT = {
    "a function": ("blocks.py", "matches=matches", "match=matches"),
    "an argument": (
        "blocks.py",
        "def keep_blocks(db: Database, height",
        "def keep_blocks(db: Database, hight",
    ),
    "an argument's type": ("on_other_pages.py", "came_sats: int", "came_sats: str"),
    "a name in the list": ("__init__.py", "hooks.Blocks", "hooks.Block"),
    "a hook that is not listed": ("__init__.py", "    hooks.Blocks,\n", ""),
}


def refusal(folder, python):
    """What `make check` says of types and hooks; empty if it says nothing."""
    for words in ([python, ".ci/check_hooks.py"], [tool("mypy")]):
        ended = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        if ended.returncode:
            return ended.stdout + ended.stderr
    return ""


def test_a_part_that_misspells_a_hook_is_refused(tmp_path):
    """One copy for all cases, since mypy then reads again what a case has changed."""
    copied(tmp_path)
    python = python_of(tmp_path)
    for case, (name, before, after) in MISSPELT.items():
        file = tmp_path / REFUNDS / name
        text = file.read_text()
        assert before in text, case
        file.write_text(text.replace(before, after))
        message = refusal(tmp_path, python)
        assert REFUNDS in message or "part refunds" in message, case
        file.write_text(text)
    blocks = tmp_path / REFUNDS / "blocks.py"
    blocks.rename(blocks.with_name("block.py"))
    message = refusal(tmp_path, python)
    assert "the part refunds lists Blocks, but has no blocks.py" in message
