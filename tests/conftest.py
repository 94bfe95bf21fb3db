"""Fixtures: a service in this process on a temporary database, and its fake surroundings."""

import gc
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from hypothesis import HealthCheck, settings

from tests.support import postgres
from tests.support.browser import Browser, Tab
from tests.support.builders import Clock, Shop, TickerServer, open_shop
from tests.support.databases import ON_POSTGRES
from tests.support.fake_esplora import LiedTo, Terminal, Till, open_lied_to, open_till
from tests.support.hosted import Counter, open_counter
from tests.support.paths import GONE, TESTS
from tests.support.playground import Playground, start_playground
from tests.support.receiver import Receiver
from tests.support.routes import MapCompiledOnce
from tests.support.templates import TEMPLATES, share_templates

# The tests of a part that was deleted have nothing to test.
collect_ignore = [
    f"{folder}/{part}" for folder in ("parts", "nightly/parts") for part in GONE
]

# Not by the clock: a machine that stands still for a moment fails nothing. What must hold before
# a change lands tries the same examples each time; a developer's runs look for new ones.
settings.register_profile(
    "patient",
    deadline=None,
    derandomize="CI_RUN" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")


def pytest_configure() -> None:
    """Has the tests' folders in memory, where there is room: SQLite waits for a disk."""
    if folder := postgres.in_memory():
        tempfile.tempdir = os.environ["TMPDIR"] = folder


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """On PostgreSQL a module that marks no test for it is not even imported."""
    if not ON_POSTGRES or collection_path.suffix != ".py":
        return None
    return "both_databases" not in collection_path.read_text("utf-8") or None


# Left out of `make test`: what starts a browser, a service beside it or a chain of its own, and
# the folders of what needs another's server, a simulation or minutes.
SLOW_FIXTURES = {
    "open_tab",
    "counter",
    "new_counter",
    "playground",
    "open_tills",
    "lied_to",
}
SLOW_FOLDERS = ("nightly", "node", "sandbox", "storage/server", "trips")
# Each test of theirs takes half a minute or more.
LONGEST_MODULES = ("test_parts.py",)


def is_nightly(path: Path) -> bool:
    return path.is_relative_to(TESTS / "nightly")


@cache
def is_of_slow_folder(path: Path) -> bool:
    folder = path.parent.relative_to(TESTS)
    return any(folder.is_relative_to(slow) for slow in SLOW_FOLDERS)


def is_slow(item: pytest.Item) -> bool:
    """By what it starts, or where it lies; a module may say so of itself too."""
    if is_of_slow_folder(item.path):
        return True
    fixtures = item.fixturenames if isinstance(item, pytest.Function) else ()
    return not SLOW_FIXTURES.isdisjoint(fixtures)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Marks the slow tests; on PostgreSQL chooses those marked `both_databases`.

    It puts long tests first, so that at the end no worker is left alone with one.
    """
    for item in items:
        if is_slow(item):
            item.add_marker("slow")
    if ON_POSTGRES:
        others = [
            item for item in items if not item.get_closest_marker("both_databases")
        ]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item.get_closest_marker("both_databases")]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    items[:] = in_order_of_length(items, workers)


def in_order_of_length(items: list[pytest.Item], workers: int) -> Iterator[pytest.Item]:
    """Each worker's share begins with long tests: xdist gives each as many that follow one another.

    The tests of a module stay together, since they share what the module has started.
    """
    longest = [item for item in items if item.path.name in LONGEST_MODULES]
    modules: dict[Path, list[pytest.Item]] = {}
    others = []
    for item in items:
        if item.path.name in LONGEST_MODULES:
            continue
        if item.get_closest_marker("slow"):
            modules.setdefault(item.path, []).append(item)
        else:
            others.append(item)
    slow = sorted(modules.values(), key=lambda tests: not is_nightly(tests[0].path))
    rest = iter(others)
    for worker in range(workers):
        first = longest[worker::workers] + list(chain(*slow[worker::workers]))
        yield from first
        size = len(items) // workers + (worker < len(items) % workers)
        yield from islice(rest, max(0, size - len(first)))
    yield from rest


@pytest.fixture(autouse=True, scope="session")
def templates_and_routes_are_compiled_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Not by each of a thousand services, of which half the time would go into routes.

    Templates lie where every worker, and every server, finds what another has compiled.
    """
    folder = tmp_path_factory.getbasetemp().parent / "templates"
    folder.mkdir(exist_ok=True)
    os.environ[TEMPLATES] = str(folder)
    share_templates(folder)
    Flask.url_map_class = MapCompiledOnce


def pytest_collection_finish() -> None:
    """Keeps the loaded modules out of every later garbage collection."""
    gc.freeze()


@pytest.fixture(autouse=True)
def no_databases_left() -> Iterator[None]:
    """Removes what a test made on the server: each takes 8 MB."""
    before = set(postgres.server().made) if ON_POSTGRES else set()
    yield
    if postgres.server.cache_info().currsize:
        for url in postgres.server().made - before:
            postgres.server().drop(url)


@pytest.fixture(scope="session")
def ticker() -> Iterator[TickerServer]:
    """A price source on a real socket: 60,000 USD for a bitcoin unless a test says otherwise."""
    with TickerServer() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    """A clock that stands at the real present until a test moves it."""
    return Clock()


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Set at the end of the test, so that no reply that waits for it outlives it."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def shop(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Shop]:
    """A service with one merchant, a write key and a read key."""
    ticker.reset()
    with open_shop(tmp_path, ticker.url, clock) as opened:
        yield opened


@pytest.fixture
def open_tills(
    tmp_path: Path, ticker: TickerServer, clock: Clock
) -> Iterator[Callable[..., Till]]:
    """Opens tills with other settings."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            open_till(tmp_path, ticker, clock, **options)
        )


@pytest.fixture
def till(open_tills: Callable[..., Till]) -> Till:
    """A shop beside a chain of its own, which customers pay on."""
    return open_tills()


@pytest.fixture
def blocktill(till: Till) -> Terminal:
    """The command line of that shop."""
    return Terminal(till)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver of webhooks."""
    with Receiver() as listening:
        yield listening


@pytest.fixture
def open_shops(
    tmp_path: Path, ticker: TickerServer, clock: Clock
) -> Iterator[Callable[..., Shop]]:
    """Makes services with other settings, each on a database of its own unless told otherwise."""
    ticker.reset()
    with ExitStack() as stack:
        yield lambda **environ: stack.enter_context(
            open_shop(
                Path(tempfile.mkdtemp(dir=tmp_path)), ticker.url, clock, **environ
            )
        )


@pytest.fixture
def lied_to(
    tmp_path: Path, ticker: TickerServer, clock: Clock
) -> Iterator[Callable[..., LiedTo]]:
    """Opens shops whose explorer lies as told."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            open_lied_to(tmp_path, ticker, clock, **options)
        )


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, one for all tests; they skip with a reason where it is missing."""
    with Browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens tabs; whatever else a test is about, none may ask another host or complain."""
    opened: list[Tab] = []

    def open_tab(*args: Any, **kwargs: Any) -> Tab:
        opened.append(browser.open(*args, **kwargs))
        return opened[-1]

    yield open_tab
    for tab in opened:
        tab.close()
    assert [tab.strangers + tab.complaints for tab in opened] == [[] for _ in opened]


@pytest.fixture(scope="module")
def counter(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, ticker: TickerServer
) -> Iterator[Counter]:
    """`blocktill serve`, a chain to pay on, and the check: one for the browsers of a file."""
    pages = {"BLOCKTILL_MERCHANT_PAGES": "on", "BLOCKTILL_GREENFIELD": "on"}
    with open_counter(tmp_path_factory.mktemp("counter"), ticker, **pages) as opened:
        yield opened


@pytest.fixture
def new_counter(tmp_path: Path, ticker: TickerServer) -> Iterator[Counter]:
    """One where nothing was done; named before `open_tab`, whose pages ask it to the end."""
    with open_counter(tmp_path, ticker, BLOCKTILL_MERCHANT_PAGES="on") as opened:
        ticker.price("60000.00", eur="50000.00")
        yield opened


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    """The playground that `make run` starts, one for each file."""
    started = start_playground(tmp_path_factory.mktemp("playground"))
    yield started
    assert started.stop(signal.SIGHUP) == 0  # as when the terminal's window is closed
    assert "Traceback" not in started.talk.read_text()
