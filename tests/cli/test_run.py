"""`blocktill run`: service and check as one command, which makes its database and ends as one."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from btcpay.cli.children import Children
from btcpay.cli.run import prepare
from storage import versions
from storage.database import sqlite_path
from storage.steps import STEPS
from tests.support.builders import Live, clean_environ, until
from tests.support.playground import children_of, is_alive
from tests.support.processes import name_of
from tests.support.waiting import waits_without_limit

pytestmark = pytest.mark.slow

RUN = ("run", "--every", "1")


def children(live):
    """The process of the service and that of the check."""
    family = children_of(live.pid)
    service = next(pid for pid in family if name_of(pid) == "till-service")
    return service, next(pid for pid in family if name_of(pid) == "till-check")


@pytest.mark.parametrize("signalled", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_order_is_paid_and_a_signal_ends_all(till, tmp_path, signalled):
    with Live(till.shop, tmp_path, words=RUN) as live:
        order = live.ask(
            "POST", "/invoices", till.shop.write_key, json={"amount_usd": 25}
        )
        till.pay(order.json())
        till.mine()
        until(lambda: "paid" in till.kinds(order.json()), "the payment to be seen")
        family = until(lambda: children_of(live.pid), "its processes")
        os.kill(live.pid, signalled)
        assert live.wait() == 0
    until(lambda: not any(map(is_alive, family)), "all to end")
    lines = [json.loads(line) for line in live.log().splitlines()]
    assert {"check", "Shutting down: Master"} <= {line["message"] for line in lines}


@pytest.mark.parametrize("which", ["service", "check"])
def test_when_one_is_killed_the_other_ends_and_its_status_is_the_commands(
    shop, tmp_path, which
):
    with Live(shop, tmp_path, words=RUN) as live:
        family = children_of(live.pid)
        victim = dict(
            zip(
                ("service", "check"), until(lambda: children(live), "both"), strict=True
            )
        )
        os.kill(victim[which], signal.SIGKILL)
        assert live.wait() == 128 + signal.SIGKILL
        assert f"the {which} was killed (signal 9)" in live.log()
    until(lambda: not any(map(is_alive, family)), "all to end")


def test_when_run_is_killed_itself_service_and_check_end(shop, tmp_path):
    with Live(shop, tmp_path, words=RUN) as live:
        family = children_of(live.pid)
        os.kill(live.pid, signal.SIGKILL)
        until(lambda: not any(map(is_alive, family)), "both to end")


def test_it_waits_for_its_children_without_looking(shop, tmp_path):
    with Live(shop, tmp_path, words=RUN) as live:
        until(lambda: waits_without_limit(live.pid, live.pid), "it to wait", 20)


def memory_of(pid):
    """Kilobytes that are the process's own, and that it shares (proc_pid_smaps(5))."""
    sums = {"Private": 0, "Shared": 0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        kind = line.partition("_")[0]
        if line.startswith(("Private_Dirty:", "Shared_Dirty:")):
            sums[kind] += int(line.split()[1])
    return sums["Private"], sums["Shared"]


def test_its_processes_share_the_memory_of_the_program(shop, tmp_path):
    with Live(shop, tmp_path, words=RUN, by_command=True) as live:
        service, check = until(lambda: children(live), "both")
        (worker,) = until(lambda: children_of(service), "the worker")
        own = {}
        for name, pid in (("service", service), ("worker", worker), ("check", check)):
            own[name], shared = memory_of(pid)
            assert own[name] < shared, name
        assert own["service"] < 12_000
        for pid in (live.pid, service, worker, check):
            assert "psycopg" not in Path(f"/proc/{pid}/maps").read_text()


def test_a_port_that_is_taken_ends_run(shop, tmp_path):
    (tmp_path / "second").mkdir()
    with (
        Live(shop, tmp_path) as first,
        pytest.raises(AssertionError, match="the service ended"),
    ):
        Live(
            shop,
            tmp_path / "second",
            words=RUN,
            BLOCKTILL_BIND=f"127.0.0.1:{first.port}",
        )


def test_the_database_is_made_once(shop, tmp_path):
    path = tmp_path / "new" / "shop.db"
    made = {"BLOCKTILL_DATABASE_URL": f"sqlite:///{path}"}
    for words in ("made a new database for regtest", "Starting gunicorn"):
        with Live(shop, tmp_path, words=RUN, **made) as live:
            assert words in live.log() and live.log().count("made a new") == (
                words[0] == "m"
            )


def test_a_new_shop_is_told_where_to_begin(shop, tmp_path):
    new = {"BLOCKTILL_DATABASE_URL": f"sqlite:///{tmp_path}/new.db"}
    with Live(shop, tmp_path, words=RUN, **new) as live:
        assert re.search(
            r"^To begin, open http://\S+/merchant/start/\w", live.log(), re.M
        )
    with Live(shop, tmp_path, words=RUN, BLOCKTILL_MERCHANT_PAGES="off", **new) as live:
        assert "To begin" not in live.log()


def test_a_file_of_an_older_version_is_copied_before_it_is_brought_to_this_one(
    shop, tmp_path, monkeypatch, capsys
):
    steps = shutil.copytree(STEPS, tmp_path / "steps")
    (steps / "9999_next.sql").write_text(
        "ALTER TABLE merchant ADD COLUMN favourite TEXT;"
    )
    path = sqlite_path(shop.service.settings.database_url)
    prepare(shop.service.settings, steps)
    beside = path.with_name(f"{path.name}.version-{versions.VERSION}")
    said = capsys.readouterr().err
    assert f"copied the database of version {versions.VERSION} to {beside}" in said
    for file, columns in ((path, 1), (beside, 0)):
        with closing(sqlite3.connect(file)) as db:
            table = db.execute(
                "SELECT name FROM pragma_table_info('merchant')"
            ).fetchall()
        assert table.count(("favourite",)) == columns
    prepare(shop.service.settings, steps)
    assert capsys.readouterr().err == ""


STUBBORN = """
import os, pathlib, signal, subprocess, sys, time
orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
{}
pathlib.Path("pids").write_text(f"{{os.getpid()}} {{orphan.pid}}\\n")
time.sleep(60)
"""


@pytest.mark.parametrize(
    "how",
    ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"],
    ids=["that leaves a process behind", "that does not end"],
)
def test_nothing_survives_of_a_child(tmp_path, how):
    (tmp_path / "stubborn.py").write_text(STUBBORN.format(how))
    environ = clean_environ(PYTHONPATH=str(tmp_path))
    with (
        contextlib.chdir(tmp_path),
        Children(environ, 0.2, tmp_path / "log") as children,
    ):
        children.start("check", "stubborn")
        file = tmp_path / "pids"
        until(
            lambda: file.exists() and file.read_text().endswith("\n"), "its processes"
        )
    pids = [int(pid) for pid in file.read_text().split()]
    until(lambda: not any(map(is_alive, pids)), "both to end")


# The child makes its session only after its parent is dead.
KILLED_AFTER_FORK = """
import os, signal, time
from btcpay.cli import children

parent = os.getpid()
make_session = os.setsid

class LastAct(children.Forked):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        os.kill(parent, signal.SIGKILL)

def setsid_of_an_orphan():
    while os.getppid() == parent:
        time.sleep(0.01)
    make_session()

os.setsid = setsid_of_an_orphan
children.Forked = LastAct
with children.Children({}, 1) as started:
    started.fork("service", lambda: time.sleep(60))
"""


def test_a_child_ends_even_if_run_is_killed_right_after_the_fork():
    """While the child lives, it holds the pipe of the output open."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_AFTER_FORK], stdout=subprocess.PIPE
    )
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (-signal.SIGKILL, b"")
