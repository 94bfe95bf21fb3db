"""Troubles of a server alone: it restarts, goes away, or its driver is missing."""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from peewee import OperationalError

from btcpay.values.errors import DatabaseNotReady
from storage import locks, versions
from storage.database import open_database
from storage.queries import merchants, meta
from tests.support import postgres
from tests.support.builders import clean_environ
from tests.support.paths import PROJECT
from tests.support.pooler import Pooler
from tests.support.programs import ALWAYS

# As where requirements/postgres.txt was never installed.
WITHOUT_DRIVER = "import sys; sys.modules['psycopg'] = None; "


def ask_at_once(shop):
    """Four orders and four readings in eight threads; their statuses."""
    with ThreadPoolExecutor(8) as pool:
        made = [
            pool.submit(shop.post, "/invoices", {"amount_usd": 5}) for _ in range(4)
        ]
        read = [pool.submit(shop.get, "/balance") for _ in range(4)]
        return [future.result().status_code for future in [*made, *read]]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_no_request_fails_after_the_server_was_restarted(shop, mode):
    wanted = [201] * 4 + [200] * 4
    assert ask_at_once(shop) == wanted  # every connection of the pool is in use once
    postgres.server().restart(mode)
    assert ask_at_once(shop) == wanted


def test_a_restart_amid_a_transaction_undoes_it_and_is_not_hidden(shop):
    db = shop.service.db
    with pytest.raises(OperationalError), db.write():
        db.get(merchants.TAKE_INDEX, id=shop.merchant_id)
        postgres.server().restart()
        db.get(merchants.TAKE_INDEX, id=shop.merchant_id)
    with db.write():
        assert db.get(merchants.TAKE_INDEX, id=shop.merchant_id).next_index == 1


def test_every_connection_comes_back_to_the_pool(till):
    till.shop.invoice()
    for _ in range(3):  # each run asks for its quota in threads of its own
        till.check()
    pool = till.shop.service.db.connection
    assert pool._in_use == {} and 1 <= len(pool._connections) <= 5


def test_a_pool_whose_connections_are_all_in_use_is_an_error_of_the_database(url):
    db = open_database(url)
    db.connection._max_connections = 1
    db.connection._wait_timeout = 0.01
    in_use = pytest.raises(OperationalError, match="connections are in use")
    with db.borrow_connection(), ThreadPoolExecutor(1) as pool, in_use:
        pool.submit(versions.version, db).result()
    assert versions.version(db) == versions.VERSION
    db.close()


def test_a_commit_waits_for_the_disk_whatever_the_server_is_set_to(url):
    with psycopg.connect(url, autocommit=True) as connection:
        name = url.rpartition("/")[2]
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    db = open_database(url)
    with db.borrow_connection():
        assert db.connection.execute_sql("SHOW synchronous_commit").fetchone() == (
            "on",
        )
    db.close()


@pytest.mark.skipif(
    not (Pooler.PROGRAM or ALWAYS), reason="no pgbouncer on this machine"
)
def test_behind_a_pooler_of_transactions_a_service_serves_and_a_lock_is_refused(
    url, open_shops
):
    """Each statement may go over another connection, even the sixth, which would be prepared."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    pooler = Pooler(postgres.server(), folder)
    try:
        pooled = pooler.url(url.rpartition("/")[2])
        shop = open_shops(BLOCKTILL_DATABASE_URL=pooled)
        assert [ask_at_once(shop) for _ in range(3)] == [[201] * 4 + [200] * 4] * 3
        refused = pytest.raises(DatabaseNotReady, match="not to a pooler")
        with refused, locks.only_one(shop.service.db, pooled, "check"):
            pass
    finally:
        pooler.stop()


def without_driver(words, url):
    code = f"{WITHOUT_DRIVER}sys.argv = ['blocktill', *{words.split()}]"
    code += "; from btcpay.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environ(BLOCKTILL_DATABASE_URL=url),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_shop_on_sqlite_needs_no_driver(tmp_path):
    url = f"sqlite:///{tmp_path}/new.db"
    made, done = (
        without_driver(words, url) for words in ("migrate", "merchant list --json")
    )
    assert made.returncode == 0, made.stderr
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_a_driver_that_is_missing_is_named(url):
    done = without_driver("merchant list", url)
    assert done.returncode == 1 and "-r requirements/postgres.txt" in done.stderr
    assert "Traceback" not in done.stderr
    (finding,) = json.loads(without_driver("doctor --json", url).stdout)[:1]
    assert finding["colour"] == "red" and finding["remedy"].startswith("pip install ")


def test_facts_are_kept_for_every_process(url):
    one = open_database(url)
    two = open_database(url)
    key = meta.Key.COOKIE_KEY
    assert meta.keep(one, key, "a") == meta.keep(two, key, "b") == "a"
    one.close(), two.close()
