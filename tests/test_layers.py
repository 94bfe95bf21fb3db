"""The arrows of the architecture, read from the imports; and what must not stand in the code."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from btcpay import hooks
from tests.support.paths import GONE, OPTIONAL, PROJECT

PACKAGES = ("btcpay", "schemas", "storage")
ENTRIES = ("app", "wsgi")

# The house, from the roof down: each room, and the rooms that it may import. A room is a folder.
HOUSE = """
wsgi: app settings web
app: api checkout health invoices schemas settings storage values web
greenfield: api health http invoices merchants notify schemas settings settlement storage values
    web
merchant_pages: backup bitcoin chain check checkout exports health invoices languages merchants
    notify schemas settings storage values web
refunds: bitcoin cli exports invoices languages notify prices proofs schemas settings storage
    values web
bills: checkout cli invoices languages merchants notify prices settings storage values web
peers: bitcoin chain http proofs settings storage values
sandbox_command: check cli merchants notify settings storage values
api: merchants notify schemas settlement storage values web
checkout: chain invoices merchants settings settlement storage values web
cli: backup bitcoin chain check exports health http invoices languages merchants notify prices
    proofs schemas settings storage values
check: bitcoin chain http invoices notify prices proofs settings settlement storage values
web: health languages merchants notify prices schemas settings storage values
backup: bitcoin chain http merchants settings storage values
health: bitcoin chain http merchants notify prices settings settlement storage values
invoices: merchants notify prices schemas settings settlement storage values
chain: bitcoin http proofs settings settlement storage values
exports: languages storage values
merchants: bitcoin storage values
notify: http languages schemas settings storage values
prices: http settings values
http: values
languages: values
proofs: bitcoin values
sandbox: bitcoin values
schemas: values
settings: values
storage: values
bitcoin:
settlement: values
values:
"""
ROOMS = {
    room: set(below.split())
    for room, below in re.findall(r"^(\w+):((?:.|\n )*)", HOUSE, re.M)
}
# A part that was deleted leaves its rows here and in the picture.
ROOMS = {room: below - {*GONE} for room, below in ROOMS.items() if room not in GONE}
# What belongs to no room: the package, its entry, the page of hooks, the wing of parts.
ABOVE = ("btcpay", "btcpay.__main__", "btcpay.hooks", "btcpay.parts")
# The two places that read a clock: the service's, and the sandbox's entry.
CLOCKS = {"btcpay/values/times.py", "btcpay/sandbox/__main__.py"}
CLOCK = re.compile(
    r"(.*\.)?(datetime\.(now|utcnow|today)|date\.today)|time\.(time|time_ns)"
)
LOADING = re.compile(r"(.*\.)?(__import__|import_module|import_string|resolve_name)")
# Libraries that know private keys or bring a compiled curve.
OF_KEYS = {"bdkpython", "bit", "coincurve", "bip32", "ecdsa", "cryptography", "embit"}
CURVE = "btcpay.bitcoin.secp256k1"

SOURCES = [PROJECT / f"{entry}.py" for entry in ENTRIES]
for package in PACKAGES:
    SOURCES += sorted((PROJECT / package).rglob("*.py"))


def name_of(path):
    """`btcpay.prices.price` for btcpay/prices/price.py, `btcpay` for its `__init__`."""
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in SOURCES}


def relative(path):
    return path.relative_to(PROJECT).as_posix()


@cache
def nodes(path):
    """Of the file's tree, which takes longer to walk than to read."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))))


def of_kind(kind, path):
    return [node for node in nodes(path) if isinstance(node, kind)]


@cache
def outside(path):
    """Every name that a file imports, such as `bit.PrivateKeyTestnet`."""
    found = [alias.name for node in of_kind(ast.Import, path) for alias in node.names]
    for node in of_kind(ast.ImportFrom, path):
        assert node.level == 0, f"{relative(path)}:{node.lineno} imports relatively"
        found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@cache
def calls(path):
    """Every call in a file as it is written, such as `datetime.now`, with its line."""
    return [(ast.unparse(node.func), node.lineno) for node in of_kind(ast.Call, path)]


@cache
def texts(path):
    values = [node.value for node in of_kind(ast.Constant, path)]
    return {value for value in values if isinstance(value, str)}


def as_text(path):
    """Modules that a file names in words, as the table of commands does, to load them later."""
    loads = any(LOADING.fullmatch(name) for name, _ in calls(path))
    return texts(path) & MODULES.keys() if loads else set()


@cache
def imported(path):
    """The project's modules that a file names in its imports, and as text when it loads by name."""
    modules = {
        name if name in MODULES else name.rpartition(".")[0] for name in outside(path)
    }
    return (modules & MODULES.keys()) | as_text(path)


def within(name, package):
    return name == package or name.startswith(f"{package}.")


def room_of(module):
    """`check` for btcpay.check.run, `bills` for btcpay.parts.bills.mail, `storage` for its own."""
    return module.removeprefix("btcpay.").removeprefix("parts.").partition(".")[0]


def offences(rule):
    """The offences that a rule finds, each with the file's name."""
    return [f"{relative(path)}: {found}" for path in SOURCES for found in rule(path)]


def where(rule):
    """The files in which a rule finds anything."""
    return {relative(path) for path in SOURCES if rule(path)}


def strange(path):
    """Imports of rooms that the table does not allow."""
    if name_of(path) in ABOVE:
        return []
    room = room_of(name_of(path))
    allowed = ROOMS[room] | {room, *map(room_of, ABOVE)}
    return [found for found in imported(path) if room_of(found) not in allowed]


def asking(path):
    """Paths, time-outs and retries stay behind the methods of `Explorers` and `Esplora`."""
    named = ("esplora", "endpoint", "answers")
    inner = {f"btcpay.chain.explorers.{name}" for name in named} | {"schemas.esplora"}
    own = within(name_of(path), "btcpay.chain.explorers") or within(
        name_of(path), "schemas"
    )
    return set() if own else imported(path) & inner


def unused(path):
    """Private functions that nobody calls in their module, but for those that libraries call."""
    functions = {node.name for node in of_kind(ast.FunctionDef, path)}
    functions -= {"_serialize", "_deserialize", "_is_closed"}
    words = re.findall(r"\w+", path.read_text(encoding="utf-8"))
    return [
        name for name in functions if re.match(r"_[^_]", name) and words.count(name) < 2
    ]


# Bitcoin is int, money is Decimal; a constant or a duration in seconds is neither.
RULES = {
    "imports go only where the table says": strange,
    "nobody but its room knows how an explorer is asked": asking,
    "no library of private keys is imported": (
        lambda path: [
            name for name in outside(path) if name.partition(".")[0] in OF_KEYS
        ]
    ),
    "no module imports what is another one's own": (
        lambda path: [
            name for name in outside(path) if re.search(r"\._[^_][^.]*$", name)
        ]
    ),
    "there is no float": lambda path: [
        line for name, line in calls(path) if name == "float"
    ],
    "every private function is used in its module": unused,
}


# What one looks for in the root of a project; everything else has a folder.
ROOT = {
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "Makefile",
    "pyproject.toml",
    "setup.cfg",
    "requirements.txt",
    "app.py",
    "wsgi.py",
    ".gitignore",
    ".editorconfig",
    ".pre-commit-config.yaml",
    ".git-blame-ignore-revs",
}


@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="no checkout")
def test_the_root_has_the_files_that_one_looks_for_there_and_no_other():
    words = ["git", "ls-files", "--", ":(glob)*"]
    listed = subprocess.run(words, cwd=PROJECT, capture_output=True, check=True)
    assert set(listed.stdout.decode().split()) == ROOT


@cache
def files_of_tests():
    """Without a look into the many thousand files of node_modules."""
    folders = [PROJECT / "tests"]
    for folder in folders:
        inner = filter(Path.is_dir, folder.iterdir())
        folders += [path for path in inner if path.name != "node_modules"]
    return [path for folder in folders for path in sorted(folder.glob("test_*.py"))]


def test_no_two_tests_share_a_name():
    """A name is a sentence that says what holds; one that fails is found by it."""
    names = [
        name
        for path in files_of_tests()
        for name in re.findall(r"(?m)^ *def (test_\w+)", path.read_text("utf-8"))
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_no_two_files_of_tests_share_a_name():
    """Folders of tests are no packages: pytest imports only the first file of a name."""
    names = [path.name for path in files_of_tests()]
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_no_file_breaks_a_rule(rule):
    assert offences(rule) == []


def test_a_module_that_is_named_as_text_is_imported():
    """Loaded when they are used are the other commands, and the driver of a store."""
    assert where(as_text) == {"btcpay/cli/main.py", "btcpay/web/rate_limits.py"}
    assert "btcpay.cli.doctor" in imported(MODULES["btcpay.cli.main"])


def test_every_room_is_in_the_table_and_every_row_is_a_room():
    assert {room_of(module) for module in MODULES} == {*ROOMS, *map(room_of, ABOVE)}


def test_explorers_are_opened_in_one_place():
    """Everybody else is given them."""
    made = {"Explorers", "Esplora", "Endpoint"}
    found = where(lambda path: made & {name for name, _ in calls(path)})
    assert found == {"btcpay/chain/explorers/pool.py"}


def test_nobody_names_an_optional_part():
    """So deleting one takes its folder."""

    def naming(path):
        parts = [f"btcpay.parts.{part}" for part in hooks.parts()]
        others = [part for part in parts if not within(name_of(path), part)]
        return [n for n in imported(path) | texts(path) for p in others if within(n, p)]

    assert where(naming) == set()


def test_the_page_of_hooks_imports_types_alone():
    """Every room and every part may import it, since it imports none of them."""
    code = "import btcpay.hooks, sys; print(*(name for name in sys.modules if '.' in name))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True
    ).stdout
    ours = {name for name in loaded.decode().split() if within(name, "btcpay")}
    assert ours == {"btcpay.hooks"}


def test_the_table_has_no_row_that_nobody_needs():
    """A room that may be imported, but is not, is a door that should be shut."""
    used: dict[str, set[str]] = {room_of(module): set() for module in MODULES}
    for module, path in MODULES.items():
        if module not in ABOVE:
            used[room_of(module)] |= {room_of(found) for found in imported(path)}
    assert {
        room: ROOMS[room] - used[room] for room in ROOMS if ROOMS[room] - used[room]
    } == {}


def test_the_picture_of_the_rooms_is_the_table_of_the_layers():
    """Every room is in it once, above all that it may import."""
    page = (PROJECT / "docs/developers/architecture.md").read_text(encoding="utf-8")
    floors = [
        line.partition("#")[0].split() for line in page.split("```")[1].splitlines()[1:]
    ]
    floor_of = {room: -number for number, rooms in enumerate(floors) for room in rooms}
    assert set(floor_of) - {*GONE} == set(ROOMS) and sum(map(len, floors)) == len(
        floor_of
    )
    for room, allowed in ROOMS.items():
        assert [
            below for below in allowed if floor_of[below] >= floor_of[room]
        ] == [], room


def test_the_tests_know_each_part_that_may_be_deleted():
    assert set(hooks.parts()) | {*GONE} == {*OPTIONAL}


def test_no_module_imports_itself_by_a_detour():
    edges = {name: imported(path) - {name} for name, path in MODULES.items()}
    edges["btcpay.hooks"] = set()  # types alone
    # A package's `__init__` is read before its modules, whoever names it.
    edges = {
        name: {to for to in found if not within(name, to)}
        for name, found in edges.items()
    }
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_the_service_adds_public_tweaks_to_public_points_and_nothing_else():
    """A secret would have to begin at G, which only the sandbox's signer may name.

    The curve itself names it as the start of its table.
    """

    def defined(node):
        return [n for n in ast.iter_child_nodes(node) if hasattr(n, "name")]

    public = [
        n for n in defined(nodes(MODULES[CURVE])[0]) if not n.name.startswith("_")
    ]
    assert [node.name for node in public] == ["Point"]
    assert [n.name for n in defined(public[0])] == [
        "parse",
        "format",
        "with_even_y",
        "add",
        "add_each",
    ]

    def beyond(path):
        names = [name for name in outside(path) if within(name, CURVE)]
        return [name for name in names if name != f"{CURVE}.Point"]

    assert where(beyond) == {"btcpay/sandbox/payer/key.py"}


def test_what_is_pure_reads_no_database():
    for name in ("btcpay.merchants.branding", "btcpay.web.pages.qr"):
        assert not any(within(found, "storage") for found in imported(MODULES[name])), (
            name
        )


def test_only_entry_points_read_the_wall_clock():
    found = offences(
        lambda path: [line for name, line in calls(path) if CLOCK.fullmatch(name)]
    )
    assert {line.partition(":")[0] for line in found} == CLOCKS and len(found) == len(
        CLOCKS
    )


def test_only_the_top_asks_what_time_it_is():
    """Everything else gets `now`, or the function that answers it."""
    top = [
        m
        for m, path in MODULES.items()
        if "btcpay.values.times.utc_now" in outside(path)
    ]
    assert set(map(room_of, top)) == {"app", "cli", "sandbox_command"} - {*GONE}


def test_every_module_says_in_its_name_what_it_is():
    nothing = ("utils", "util", "helpers", "helper", "common", "misc")
    assert [name for name in MODULES if name.rpartition(".")[2] in nothing] == []


IMPORTER = """
import importlib, os, sys
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
REFUSED = ("sqlite3.connect", "subprocess.Popen", "os.system", "os.fork", "os.mkdir", "os.remove")
def refuse(event, args):
    if event == "open" and (set(str(args[1] or "")) & set("wax+") or (args[2] or 0) & WRITING):
        raise RuntimeError(f"opens {args[0]} for writing")
    if event in REFUSED or event.startswith(("socket.connect", "socket.bind", "socket.getaddr")):
        raise RuntimeError(f"{event} {args}")
sys.addaudithook(refuse)
for name in sys.argv[1:]:
    importlib.import_module(name)
print("imported", len(sys.argv) - 1)
"""


def import_all(names, option):
    """In a new interpreter, in which nothing may be opened."""
    process = subprocess.run(
        [sys.executable, option, "-c", IMPORTER, *names],
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.stdout == f"imported {len(names)}\n", process.stderr


@pytest.mark.parametrize("room", ["settlement", "proofs"])
def test_what_decides_and_what_proves_needs_nothing_but_python(room):
    """Loaded without any site-packages, so that no detour leads to a library either."""
    import_all([name for name in MODULES if within(name, f"btcpay.{room}")], "-S")


def test_importing_opens_nothing():
    """All modules but those that run when they are imported: gunicorn's two, and `__main__`."""
    entries = ("wsgi", "btcpay.web.gunicorn_conf")
    names = [
        name
        for name in MODULES
        if name not in entries and not name.endswith("__main__")
    ]
    import_all([name for name in names if not re.search(r"\.\d", name)], "-B")
