"""A serving process's share of its machine, and gunicorn's end when it cannot serve."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from btcpay.web.process import keep_to_one_processor
from storage.versions import migrate
from tests.support.builders import Live, clean_environ, until
from tests.support.merchant_browser import ON
from tests.support.paths import GONE, PROJECT
from tests.support.playground import children_of
from tests.support.ports import free_port
from tests.support.processes import open_files
from tests.support.waiting import threads_of, waits_without_limit

pytestmark = pytest.mark.slow

FEW_FILES = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh"]


def test_a_worker_keeps_to_one_processor_and_its_master_to_none(shop, tmp_path):
    with Live(shop, tmp_path) as live:
        (worker,) = children_of(live.pid)
        assert len(os.sched_getaffinity(worker)) == 1
        assert os.sched_getaffinity(live.pid) == os.sched_getaffinity(0)


def test_a_worker_shows_that_it_lives_by_a_file_in_memory(shop, tmp_path):
    with Live(shop, tmp_path) as live:
        (worker,) = children_of(live.pid)
        beats = [file for file in open_files(worker) if "wgunicorn" in file]
    assert [Path(file).parent for file in beats] == [Path("/dev/shm")]  # noqa: S108


def test_nothing_but_gunicorns_own_loop_wakes_an_idle_worker(shop, tmp_path):
    """Not even the threads that note that a key was used, and what it was used for."""
    metrics = f"127.0.0.1:{free_port()}"
    environ = ON | {"BLOCKTILL_METRICS_BIND": metrics}
    with Live(shop, tmp_path, **environ) as live:
        assert live.ask("GET", "/balance", shop.read_key).ok
        assert requests.get(f"http://{metrics}/metrics", timeout=60).ok
        (worker,) = children_of(live.pid)

        def sleeps():
            _, *others = threads_of(worker)
            return all(waits_without_limit(worker, thread) for thread in others)

        until(sleeps, "all other threads to wait", 40)
        least = 4 if "merchant_pages" in GONE else 5
        assert len(threads_of(worker)) >= least


def test_the_main_thread_lets_the_threads_of_requests_run(shop, tmp_path):
    with Live(shop, tmp_path) as live:
        (worker,) = children_of(live.pid)
        assert live.ask("GET", "/invoices", shop.read_key).status_code == 200
        threads = {int(thread) for thread in os.listdir(f"/proc/{worker}/task")}
        others = [os.sched_getscheduler(thread) for thread in threads - {worker}]
        main_thread = os.sched_getscheduler(worker)
    assert main_thread == os.SCHED_BATCH
    assert os.SCHED_OTHER in others


def processor_of(bind):
    allowed = os.sched_getaffinity(0)
    keep_to_one_processor(bind)
    try:
        return os.sched_getaffinity(0)
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="this machine has one processor"
)
def test_shops_with_neighbouring_addresses_take_different_processors():
    for one, other in (
        ("127.0.0.1:8000", "127.0.0.1:8001"),
        ("127.0.0.1:8009", "127.0.0.1:8010"),
        ("unix:/run/a", "unix:/run/b"),
    ):
        assert len(processor_of(one)) == 1
        assert processor_of(one) != processor_of(other)
        assert processor_of(one) == processor_of(one)


def test_more_clients_than_files_end_no_worker(shop, tmp_path):
    with Live(shop, tmp_path, before=FEW_FILES) as live:
        clients = [
            socket.create_connection(("127.0.0.1", live.port), 60) for _ in range(300)
        ]
        for client in clients:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert clients[0].recv(12) == b"HTTP/1.1 200"
        for client in clients:
            client.close()
        assert live.ask("GET", "/invoices", shop.read_key).status_code == 200
        assert live.log().count("Booting worker") == 1 and "Traceback" not in live.log()


def test_a_wrong_setting_ends_gunicorn_wherever_it_was_started(tmp_path):
    """Without deploy/gunicorn.conf.py, which would end it sooner."""
    words = ["-m", "gunicorn", "-b", "127.0.0.1:0", "--chdir", str(PROJECT), "wsgi:app"]
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env=clean_environ(BLOCKTILL_NETWORK="mars"),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode == 3 and "BLOCKTILL_NETWORK accepts one of" in ended.stderr


def test_any_wsgi_server_serves_the_application(shop, tmp_path):
    """Python's own, which has one thread and no hooks."""
    serving = (
        "from wsgiref.simple_server import make_server; import wsgi;"
        "server = make_server('127.0.0.1', 0, wsgi.app); print(server.server_port, flush=True);"
        "[server.handle_request() for _ in range(2)]"
    )
    environ = clean_environ(**shop.environ)
    process = subprocess.Popen(
        [sys.executable, "-c", serving],
        cwd=PROJECT,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        port = int(process.stdout.readline())
        for size in (2, 70_000):
            with socket.create_connection(("127.0.0.1", port), 60) as client:
                client.sendall(
                    b"POST /api/v1/payment-links HTTP/1.0\r\nContent-Type: application/json\r\n"
                    b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{}%s"
                    % (shop.write_key.encode(), size, b" " * (size - 2))
                )
                answer = client.makefile("rb").read()
            assert answer.split(b" ")[1] == (b"201" if size == 2 else b"413")


@pytest.mark.parametrize(
    "environ",
    [
        {"BLOCKTILL_BIND": "0.0.0.0:0"},
        {"BLOCKTILL_BIND": "[::]:0"},
        {"GUNICORN_CMD_ARGS": "-b 0.0.0.0:0"},
        {"GUNICORN_CMD_ARGS": "-b 127.0.0.1:0 -b 0.0.0.0:0"},
    ],
    ids=str,
)
def test_real_money_is_served_to_strangers_through_a_proxy_alone(tmp_path, environ):
    url = f"sqlite:///{tmp_path}/shop.db"
    migrate(url, "mainnet")
    said = {
        "BLOCKTILL_NETWORK": "mainnet",
        "BLOCKTILL_DATABASE_URL": url,
        "BLOCKTILL_METRICS_BIND": "",
    }
    words = [sys.executable, "-P", "-m", "btcpay", "serve"]
    ended = subprocess.run(
        words,
        env=clean_environ(**said | environ),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
    assert (
        "on mainnet BLOCKTILL_BIND accepts an address of this machine alone"
        in ended.stderr
    )
    behind = clean_environ(**said | environ, BLOCKTILL_TRUSTED_PROXIES="1")
    with subprocess.Popen(
        words, env=behind, stderr=subprocess.PIPE, text=True
    ) as process:
        assert any("Listening at" in line for line in process.stderr)
        process.terminate()
        process.communicate(timeout=300)
