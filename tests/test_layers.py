"""The arrows of the architecture, read from the imports; and what must not stand in the code."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest
from paths import GONE, PROJECT

from btcpay import PARTS

PACKAGES = ("btcpay", "schemas", "storage")
ENTRIES = ("app", "wsgi")

# The house, from the roof down: each room, and the rooms that it may import. A room is a folder.
ROOMS = {
    room: set(below.split())
    for room, below in {
        "wsgi": "app settings",
        "app": "api checkout health invoices schemas settings storage values web",
        "greenfield": (
            "api health http invoices merchants notify schemas settings settlement storage values "
            "web"
        ),
        "merchant_pages": (
            "checkout exports health invoices languages merchants notify schemas settings "
            "storage values web"
        ),
        "refunds": (
            "bitcoin cli invoices languages notify prices proofs schemas settings storage "
            "values web"
        ),
        "bills": (
            "checkout cli invoices languages merchants notify prices settings storage values web"
        ),
        "api": "merchants notify schemas settlement storage values web",
        "checkout": "chain invoices merchants settings settlement storage values web",
        "cli": (
            "backup bitcoin chain check exports health http invoices languages merchants "
            "notify prices proofs schemas settings storage values"
        ),
        "check": (
            "bitcoin chain http invoices notify prices proofs settings settlement storage values"
        ),
        "web": "health languages prices schemas settings storage values",
        "backup": "bitcoin chain merchants settings storage values",
        "health": ("bitcoin chain http merchants notify prices settings settlement storage values"),
        "invoices": "merchants notify prices schemas settings settlement storage values",
        "chain": "bitcoin http proofs settings settlement storage values",
        "exports": "bitcoin languages storage values",
        "merchants": "bitcoin storage values",
        "notify": "http languages schemas settings storage values",
        "prices": "http settings values",
        "http": "values",
        "languages": "values",
        "proofs": "bitcoin values",
        "sandbox": "bitcoin values",
        "schemas": "values",
        "settings": "values",
        "storage": "values",
        "bitcoin": "",
        "settlement": "",
        "values": "",
    }.items()
}
# A part that was deleted (btcpay.PARTS names the others) leaves its rows here and in the picture.
DELETED = {part.rpartition("/")[2] for part in GONE}
ROOMS = {room: below - DELETED for room, below in ROOMS.items() if room not in DELETED}
# The two places that read a clock: the service's, and the sandbox's entry.
CLOCKS = {"btcpay/values/times.py", "btcpay/sandbox/__main__.py"}
IMPORTING = ("__import__", "import_module", "import_string", "resolve_name")


def sources():
    found = [PROJECT / f"{entry}.py" for entry in ENTRIES]
    for package in PACKAGES:
        found += sorted((PROJECT / package).rglob("*.py"))
    return found


def name_of(path):
    """`btcpay.prices.price` for btcpay/prices/price.py, `btcpay` for its `__init__`."""
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def relative(path):
    return path.relative_to(PROJECT).as_posix()


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes(path):
    """Of the file's tree, which takes longer to walk than to read."""
    return list(ast.walk(tree(path)))


MODULES = {name_of(path): path for path in sources()}


@cache
def imported(path):
    """The project's modules that a file names in its imports, and as text when it loads by name."""
    found = as_text(path)
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)}:{node.lineno} imports relatively"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & MODULES.keys()) or {node.module or ""}
            if not inner <= MODULES.keys():
                found.add(node.module or "")
    return {name for name in found if name.partition(".")[0] in (*PACKAGES, *ENTRIES)}


def as_text(path):
    """Modules that a file names in words, as the table of commands does, to load them later."""
    called_here = {called(node) for node in nodes(path) if isinstance(node, ast.Call)}
    if called_here.isdisjoint(IMPORTING):
        return set()
    texts = (node.value for node in nodes(path) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and text in MODULES}


def test_a_module_that_is_named_as_text_is_imported():
    """Loaded when they are used are the other commands, and the driver of a store."""
    loading = {relative(path) for path in sources() if as_text(path)}
    assert loading == {"btcpay/cli/main.py", "btcpay/web/rate_limits.py"}
    assert "btcpay.cli.doctor" in imported(MODULES["btcpay.cli.main"])


def within(name, package):
    return name == package or name.startswith(f"{package}.")


def offences(rule):
    """The offences that a rule finds, each with the file's name."""
    return [f"{relative(path)}: {found}" for path in sources() for found in rule(path)]


def room_of(module):
    """`check` for btcpay.check.run, `storage` for storage.models."""
    return module.removeprefix("btcpay.").partition(".")[0]


def test_every_room_is_in_the_table_and_every_row_is_a_room():
    assert {room_of(module) for module in MODULES} == {*ROOMS, "btcpay", "__main__"}


def test_imports_go_only_where_the_table_says():
    def strange(path):
        module = name_of(path)
        if module in ("btcpay", "btcpay.__main__"):
            return []
        room = room_of(module)
        allowed = ROOMS[room] | {room, "btcpay"}  # `btcpay` itself has the version alone
        return [found for found in imported(path) if room_of(found) not in allowed]

    assert offences(strange) == []


def test_explorers_are_opened_in_one_place():
    """Everybody else is given them."""
    made = ("Explorers", "Esplora", "Endpoint")
    found = {relative(path) for path in sources() for name, _ in calls(path) if name in made}
    assert found == {"btcpay/chain/explorers/pool.py"}


def test_nobody_else_knows_how_an_explorer_is_asked():
    """Paths, time-outs and retries stay behind the methods of `Explorers` and `Esplora`."""
    named = ("esplora", "endpoint", "answers", "answer_schemas")
    inner = {f"btcpay.chain.explorers.{name}" for name in named}

    def asking(path):
        own = within(name_of(path), "btcpay.chain.explorers")
        return set() if own else imported(path) & inner

    assert offences(asking) == []


def test_nobody_but_the_table_of_parts_names_an_optional_part():
    """So deleting one takes its folder and its line there."""

    def naming(path):
        texts = (node.value for node in nodes(path) if isinstance(node, ast.Constant))
        named = imported(path) | {text for text in texts if isinstance(text, str)}
        own = [part for part in PARTS if within(name_of(path), part)]
        return sorted(n for n in named for part in PARTS if within(n, part) and part not in own)

    assert {line.partition(":")[0] for line in offences(naming)} == {"btcpay/__init__.py"}


def test_the_table_has_no_row_that_nobody_needs():
    """A room that may be imported, but is not, is a door that should be shut."""
    used: dict[str, set[str]] = {room_of(module): set() for module in MODULES}
    for module, path in MODULES.items():
        used[room_of(module)] |= {room_of(found) for found in imported(path)}
    assert {room: ROOMS[room] - used[room] for room in ROOMS if ROOMS[room] - used[room]} == {}


@pytest.mark.parametrize("room", ["settlement", "proofs"])
def test_what_decides_and_what_proves_needs_nothing_but_python(room):
    """Loaded without any site-packages, so that no detour leads to a library either."""
    names = [name for name in MODULES if within(name, f"btcpay.{room}")]
    process = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTER, *names],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.stdout == f"imported {len(names)}\n", process.stderr


def test_the_picture_of_the_rooms_is_the_table_of_the_layers():
    """Every room is in it once, above all that it may import."""
    page = (PROJECT / "docs/developers/architecture.md").read_text(encoding="utf-8")
    floors = [line.partition("#")[0].split() for line in page.split("```")[1].splitlines()[1:]]
    floor_of = {room: -number for number, rooms in enumerate(floors) for room in rooms}
    assert set(floor_of) - DELETED == set(ROOMS) and sum(map(len, floors)) == len(floor_of)
    for room, allowed in ROOMS.items():
        assert [below for below in allowed if floor_of[below] >= floor_of[room]] == [], room


def test_no_module_imports_itself_by_a_detour():
    edges = {name: imported(path) & MODULES.keys() - {name} for name, path in MODULES.items()}
    # A package's `__init__` is read before its modules, whoever names it.
    edges = {name: {to for to in found if not within(name, to)} for name, found in edges.items()}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


# Libraries that know private keys or bring a compiled curve.
OF_KEYS = {"bdkpython", "bit", "coincurve", "bip32", "ecdsa", "cryptography", "embit"}
CURVE = "btcpay.bitcoin.secp256k1"


def test_no_library_of_private_keys_is_imported():
    def handling(path):
        return [name for name in outside(path) if name.partition(".")[0] in OF_KEYS]

    assert offences(handling) == []


def test_the_service_adds_public_tweaks_to_public_points_and_nothing_else():
    """A secret would have to begin at G, which only the sandbox's signer may name.

    The curve itself names it as the start of its table.
    """
    public = [n for n in tree(MODULES[CURVE]).body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    assert [node.name for node in public if not node.name.startswith("_")] == ["Point"]
    assert functions_of(public[0]) == ["parse", "format", "even", "add"]

    def beyond(path):
        names = [name for name in outside(path) if within(name, CURVE)]
        return [name for name in names if name != f"{CURVE}.Point"]

    found = offences(beyond)
    assert {line.partition(":")[0] for line in found} == {"btcpay/sandbox/payer/key.py"}


def functions_of(node):
    return [n.name for n in ast.iter_child_nodes(node) if isinstance(n, ast.FunctionDef)]


def outside(path):
    """Every name that a file imports, such as `bit.PrivateKeyTestnet`."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_what_is_pure_reads_no_database():
    for name in ("btcpay.merchants.branding", "btcpay.web.pages.qr"):
        assert not any(within(found, "storage") for found in imported(MODULES[name])), name


def called(node):
    """`now` for `datetime.now(...)`, `float` for `float(...)`."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


@cache
def calls(path):
    """Every call in a file as it is written, such as `datetime.now`, with its line."""
    called_here = [node for node in nodes(path) if isinstance(node, ast.Call)]
    return [(ast.unparse(node.func), node.lineno) for node in called_here]


def test_no_float():
    """Bitcoin is int, money is Decimal; a constant or a duration in seconds is neither."""
    assert offences(lambda path: [line for name, line in calls(path) if name == "float"]) == []


def test_only_entry_points_read_the_wall_clock():
    reading = re.compile(r"(.*\.)?(datetime\.(now|utcnow|today)|date\.today)|time\.(time|time_ns)")

    def read(path):
        return [line for name, line in calls(path) if reading.fullmatch(name)]

    found = offences(read)
    assert [line for line in found if line.partition(":")[0] not in CLOCKS] == []
    assert len(found) == len(CLOCKS)


def test_only_the_top_asks_what_time_it_is():
    """Everything else gets `now`, or the function that answers it."""

    def asking(path):
        return [name for name in outside(path) if name == "btcpay.values.times.utc_now"]

    found = {room_of(name_of(path)) for path in sources() if asking(path)}
    assert found == {"app", "cli"}


def test_every_module_says_in_its_name_what_it_is():
    nothing = ("utils", "util", "helpers", "helper", "common", "misc")
    assert [name for name in MODULES if name.rpartition(".")[2] in nothing] == []


def test_no_module_imports_what_is_another_ones_own():
    """A leading underscore is a module's own affair."""

    def borrowed(path):
        return [
            alias.name
            for node in nodes(path)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if re.match(r"_[^_]", alias.name)
        ]

    assert offences(borrowed) == []


def test_every_private_function_is_used_in_its_module():
    def unused(path):
        words = re.findall(r"\w+", path.read_text(encoding="utf-8"))
        return [name for name in private(path) if words.count(name) < 2]

    assert offences(unused) == []


def private(path):
    """Functions and methods with a leading underscore, but for those that libraries call."""
    return {
        node.name
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
        and re.match(r"_[^_]", node.name)
        and node.name not in ("_serialize", "_deserialize", "_is_closed")
    }


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


def test_importing_opens_nothing():
    """All modules but those that run when they are imported: gunicorn's two, and `__main__`."""
    entries = ("wsgi", "btcpay.web.gunicorn_conf")
    names = [name for name in MODULES if name not in entries and not name.endswith("__main__")]
    names = [name for name in names if not re.search(r"\.\d", name)]
    process = subprocess.run(
        [sys.executable, "-B", "-c", IMPORTER, *names],
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.stdout == f"imported {len(names)}\n", process.stderr
