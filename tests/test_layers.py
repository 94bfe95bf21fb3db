"""The arrows of the architecture, read from the imports; and what must not stand in the code."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from paths import PROJECT

PACKAGES = ("btcpay", "schemas", "storage")
ENTRIES = ("app", "wsgi")

# Plain values: no project module below them, so that storage and schemas may use them.
PLAIN = {"btcpay.errors", "btcpay.times"}
MAY_IMPORT = {
    "storage": PLAIN,
    "schemas": PLAIN,
    "btcpay": {"schemas", "storage"},
    "app": {"btcpay", "schemas", "storage"},
    "wsgi": {"app", "btcpay"},
}
# The two places that read a clock: the service's, and the sandbox's entry.
CLOCKS = {"btcpay/times.py", "btcpay/sandbox/server.py"}
LAST_RESORTS = ["btcpay/check/run.py"]  # the loop over addresses; Flask's handler needs no `except`


def sources() -> list[Path]:
    found = [PROJECT / f"{entry}.py" for entry in ENTRIES]
    for package in PACKAGES:
        found += sorted((PROJECT / package).rglob("*.py"))
    return found


def name_of(path: Path) -> str:
    """`btcpay.price` for btcpay/price.py, `btcpay` for its `__init__`."""
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def relative(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


MODULES = {name_of(path): path for path in sources()}


def imported(path: Path) -> set[str]:
    """The project's modules that a file names in its imports."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)}:{node.lineno} imports relatively"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & MODULES.keys()) or {node.module or ""}
            if not inner <= MODULES.keys():
                found.add(node.module or "")
    return {name for name in found if name.partition(".")[0] in (*PACKAGES, *ENTRIES)}


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def test_there_is_something_to_look_at():
    assert {"app", "wsgi", "btcpay.settlement.decide", "storage.models", "schemas.esplora"} <= set(
        MODULES
    )
    assert imported(MODULES["btcpay.invoices.status"]) >= {
        "btcpay.settlement.decide",
        "storage.queries.meta",
    }


def offences(rule: Callable[[Path], Iterable[object]]) -> list[str]:
    """What a rule finds in each file, with the file's name."""
    return [f"{relative(path)}: {found}" for path in sources() for found in rule(path)]


def test_imports_go_down_only():
    def upward(path: Path) -> list[str]:
        top = name_of(path).partition(".")[0]
        allowed = MAY_IMPORT[top] | {top}
        return [m for m in imported(path) if not any(within(m, lower) for lower in allowed)]

    assert offences(upward) == []


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_a_module_of_plain_values_imports_nothing_of_the_project(name):
    assert imported(MODULES[name]) == set()


def test_no_module_imports_itself_by_a_detour():
    edges = {name: imported(path) & MODULES.keys() - {name} for name, path in MODULES.items()}
    # A package's `__init__` is read before its modules, whoever names it.
    edges = {name: {to for to in found if not within(name, to)} for name, found in edges.items()}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize(
    ("package", "importers"),
    [
        pytest.param("btcpay.commands", ["btcpay.cli.main", "btcpay.commands"], id="commands"),
        pytest.param("btcpay.sandbox", ["btcpay.sandbox"], id="sandbox"),
        pytest.param("app", ["wsgi"], id="app"),
        pytest.param("wsgi", [], id="wsgi"),
    ],
)
def test_a_top_is_imported_by_its_own_alone(package, importers):
    def reaching(path: Path) -> list[str]:
        if any(within(name_of(path), importer) for importer in importers):
            return []
        return [name for name in imported(path) if within(name, package)]

    assert offences(reaching) == []


SHARED_WITH_THE_SANDBOX = "btcpay.bitcoin"


def test_the_sandbox_knows_nothing_of_the_service_but_the_structures_of_bitcoin():
    known = ("btcpay.sandbox", SHARED_WITH_THE_SANDBOX)

    def knowing(path: Path) -> list[str]:
        if not within(name_of(path), "btcpay.sandbox"):
            return []
        return [name for name in imported(path) if not any(within(name, k) for k in known)]

    assert offences(knowing) == []


# From the bytes up to the run: each may import what stands before it, never after.
PROOF_ARROWS = [
    "btcpay.bitcoin",
    "btcpay.spv.verify",
    "btcpay.spv.document",
    "btcpay.explorers.pool",
    "btcpay.explorers.evidence",
    "btcpay.settlement.decide",
    "btcpay.check.apply",
    "btcpay.check.reorg",
    "btcpay.check.run",
    "btcpay.commands",
]


@pytest.mark.parametrize("name", PROOF_ARROWS)
def test_what_proves_and_what_follows_the_chain_imports_downwards(name):
    higher = PROOF_ARROWS[PROOF_ARROWS.index(name) + 1 :]

    def upward(path: Path) -> list[str]:
        if not within(name_of(path), name):
            return []
        return [m for m in imported(path) if any(within(m, above) for above in higher)]

    assert offences(upward) == []


def test_the_pages_are_shown_by_the_checkout_alone_and_know_nothing_of_the_api():
    def reaching(path: Path) -> list[str]:
        name = name_of(path)
        if within(name, "btcpay.pages"):
            above = ("btcpay.api.admission", "btcpay.checkout.views", "btcpay.commands", "app")
            return [m for m in imported(path) if any(within(m, part) for part in above)]
        outside = name != "btcpay.checkout.views"
        return [m for m in imported(path) if outside and within(m, "btcpay.pages")]

    assert offences(reaching) == []


def test_the_structures_of_bitcoin_know_nothing_else_of_the_project():
    def knowing(path: Path) -> list[str]:
        if not within(name_of(path), "btcpay.bitcoin"):
            return []
        return [m for m in imported(path) if not within(m, "btcpay.bitcoin")]

    assert offences(knowing) == []


# What the service uses of these libraries: nothing that knows a private key.
KEYLESS = {
    "btcpay.bitcoin.hd": {"coincurve.PublicKey"},
    "btcpay.wallet.account": {"bit.base32", "bit.base58", "bit.crypto"},
    "btcpay.cli.sandbox_demo": {"bit.base58"},
}
OF_KEYS = {"bit", "coincurve", "bip32", "ecdsa", "cryptography", "embit"}


def test_no_code_of_private_keys_is_outside_the_sandbox():
    """Imports by their full names, and the ways of coincurve's PublicKey to begin at a secret."""

    def handling(path: Path) -> list[str]:
        if within(name_of(path), "btcpay.sandbox"):
            return []
        found = [
            full
            for full in outside(path)
            if full.partition(".")[0] in OF_KEYS
            if not any(within(full, known) for known in KEYLESS.get(name_of(path), ()))
        ]
        return found + [
            node.attr
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Attribute)
            if node.attr in ("from_secret", "from_valid_secret")
        ]

    assert offences(handling) == []


def outside(path: Path) -> Iterator[str]:
    """Every name that a file imports, such as `coincurve.PublicKey`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# Those that decide from what they are given alone, and so can be checked offline.
@pytest.mark.parametrize(
    "name",
    [
        "btcpay.spv.verify",
        "btcpay.settlement.decide",
        "btcpay.settlement.attention",
        "btcpay.branding",
        "btcpay.checkout.bip21",
    ],
)
def test_what_is_pure_asks_nobody_and_reads_no_clock_or_database(name):
    outside = ("btcpay.http_client", "btcpay.times", "btcpay.explorers.evidence", "storage")
    found = imported(MODULES[name])
    assert [m for m in found if any(within(m, part) for part in outside)] == []


def test_no_import_stands_inside_a_function():
    def inner(path: Path) -> list[int]:
        return [
            node.lineno
            for function in ast.walk(tree(path))
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
            or (isinstance(node, ast.Call) and called(node) in ("__import__", "import_module"))
        ]

    assert offences(inner) == []


def called(node: ast.Call) -> str:
    """`now` for `datetime.now(...)`, `float` for `float(...)`."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def calls(path: Path) -> Iterator[tuple[str, int]]:
    """Every call in a file as it is written, such as `datetime.now`, with its line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


def test_no_float():
    """Bitcoin is int, money is Decimal; a constant or a duration in seconds is neither."""
    assert offences(lambda path: [line for name, line in calls(path) if name == "float"]) == []


def test_only_entry_points_read_the_wall_clock():
    reading = re.compile(r"(.*\.)?(datetime\.(now|utcnow|today)|date\.today)|time\.(time|time_ns)")

    def read(path: Path) -> list[int]:
        return [line for name, line in calls(path) if reading.fullmatch(name)]

    found = offences(read)
    assert [line for line in found if line.partition(":")[0] not in CLOCKS] == []
    assert len(found) == len(CLOCKS)


def test_no_except_swallows_everything():
    """Cleaning up and raising again is allowed; only the last resort may go on."""

    def swallowing(path: Path) -> list[int]:
        handlers = (n for n in ast.walk(tree(path)) if isinstance(n, ast.ExceptHandler))
        return [h.lineno for h in handlers if takes_all(h) and not raises_again(h)]

    assert [line.partition(":")[0] for line in offences(swallowing)] == LAST_RESORTS


def takes_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return bool(names & {"Exception", "BaseException"})


def raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_nothing_is_left_to_do():
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    assert offences(lambda path: marks.findall(path.read_text(encoding="utf-8"))) == []


def test_every_module_says_in_its_name_and_first_line_what_it_is():
    nothing = ("utils", "util", "helpers", "helper", "common", "misc")
    assert [name for name in MODULES if name.rpartition(".")[2] in nothing] == []
    assert offences(lambda path: [] if ast.get_docstring(tree(path)) else ["no docstring"]) == []


def test_no_module_imports_what_is_another_ones_own():
    """A leading underscore is a module's own affair."""

    def borrowed(path: Path) -> list[str]:
        return [
            alias.name
            for node in ast.walk(tree(path))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if re.match(r"_[^_]", alias.name)
        ]

    assert offences(borrowed) == []


def test_every_private_function_is_used_in_its_module():
    def unused(path: Path) -> list[str]:
        words = re.findall(r"\w+", path.read_text(encoding="utf-8"))
        return [name for name in private(path) if words.count(name) < 2]

    assert offences(unused) == []


def private(path: Path) -> set[str]:
    """Functions and methods with a leading underscore, but for those that libraries call."""
    return {
        node.name
        for node in ast.walk(tree(path))
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
    """All modules but the entries that run when they are imported: wsgi and `__main__`."""
    names = [name for name in MODULES if name != "wsgi" and not name.endswith("__main__")]
    names = [name for name in names if not re.search(r"\.\d", name)]
    names += [f"storage.migrations.{p.stem}" for p in (PROJECT / "storage/migrations").glob("0*")]
    process = subprocess.run(
        [sys.executable, "-B", "-c", IMPORTER, *names],
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.stdout == f"imported {len(names)}\n", process.stderr


@pytest.mark.parametrize(
    "deed",
    [
        "open('var/x', 'w')",
        "__import__('sqlite3').connect(':memory:')",
        "__import__('socket').create_connection(('127.0.0.1', 9))",
        "__import__('os').open('var/x', __import__('os').O_CREAT)",
    ],
)
def test_the_hook_that_watches_the_imports_does_refuse(deed, tmp_path):
    (tmp_path / "culprit.py").write_text(deed)
    process = subprocess.run(
        [sys.executable, "-B", "-c", IMPORTER, "culprit"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 1 and "RuntimeError" in process.stderr
