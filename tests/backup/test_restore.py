"""`blocktill backup` and `restore` of SQLite: whole copies, and no paid address given out twice.

What a server has instead: test_restore_postgres.py, test_to_postgres.py.
"""

import json
import os
import shutil
import threading
from contextlib import closing

import pytest

from btcpay.backup.restore import restore
from btcpay.merchants.account import derive
from btcpay.settings import settings
from btcpay.values.errors import CommandError
from storage import locks, versions
from storage.backup.sqlite_file import new_file
from storage.database import open_database
from storage.queries import merchants
from tests.support.fake_esplora import Terminal
from tests.support.other_database import backed_up, change, content, on


@pytest.fixture
def file(till, tmp_path):
    """A backup of the shop as it began."""
    return backed_up(till, tmp_path / "kept.db")


@pytest.fixture
def place(tmp_path):
    """Where another database is to be; there is none."""
    return tmp_path / "place.db"


def url_of(path):
    return {"BLOCKTILL_DATABASE_URL": f"sqlite:///{path}"}


def restored(
    till, file, place, skip=100, agree=lambda moves, lost, programs: None, **environ
):
    """Restoring, below the command line."""
    read = settings.read(till.shop.environ | url_of(place) | environ)
    return restore(place, read, file, skip, agree, till.clock)


def refused(message):
    return pytest.raises(CommandError, match=message)


def test_a_backup_is_whole_its_owners_alone_and_says_what_it_is(till, tmp_path):
    till.shop.invoice()
    file = tmp_path / "kept" / "monday.db"
    file.parent.mkdir()
    result = Terminal(till).json("backup", str(file))
    assert (result["version"], result["network"]) == (versions.VERSION, "regtest")
    assert (
        result["bytes"] == file.stat().st_size and file.stat().st_mode & 0o777 == 0o600
    )
    assert len(content(file)["invoice"]) == 1
    assert [path.name for path in file.parent.iterdir()] == ["monday.db"]


def test_a_backup_overwrites_only_when_told_and_never_the_database(
    till, tmp_path, file
):
    missing = tmp_path / "no" / "kept.db"
    said = Terminal(till).run("backup", str(missing), status=1)[1]
    assert said == f"blocktill: there is no folder {missing.parent}: make it first\n"
    before = file.read_bytes()
    till.shop.invoice()
    assert "--force" in Terminal(till).run("backup", str(file), status=1)[1]
    assert file.read_bytes() == before
    Terminal(till).run("backup", str(file), "--force")
    assert len(content(file)["invoice"]) == 1
    linked = tmp_path / "linked.db"
    linked.symlink_to(tmp_path / "blocktill.db")
    for own in (tmp_path / "blocktill.db", tmp_path / "blocktill.db-wal", linked):
        said = Terminal(till).run("backup", str(own), "--force", status=1)[1]
        assert "the database itself" in said


def test_a_backup_sweeps_what_a_killed_one_left_and_nothing_of_one_under_way(
    till, tmp_path
):
    file = tmp_path / "kept" / "monday.db"
    file.parent.mkdir()
    for name in (
        ".monday.db.killed.part.blocktill",
        ".sunday.db.killed.part.blocktill",
    ):
        (file.parent / name).write_bytes(b"half of a backup")
    with new_file(file, "part") as other:
        Terminal(till).run("backup", str(file))
        assert sorted(file.parent.iterdir()) == sorted([file, other])


def spoil(path):
    """Overwrites the pages behind the first."""
    raw = bytearray(path.read_bytes())
    for start in range(2 * 4096, len(raw), 4096):
        raw[start : start + 64] = b"\xff" * 64
    path.write_bytes(raw)


def test_a_backup_beside_writers_is_one_moment(till, tmp_path):
    """Each invoice moves the counter in its own transaction: both or neither are in a copy."""
    stop = threading.Event()

    def write():
        while not stop.is_set():
            till.shop.invoice()
        till.shop.service.db.close()

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for number in range(3):
            rows = content(backed_up(till, tmp_path / f"{number}.db"))
            counter = rows["merchant"][0][4]
            assert counter == len(rows["invoice"])
    finally:
        stop.set()
        for writer in writers:
            writer.join()


OTHER_NETWORK = "UPDATE meta SET value = 'signet' WHERE name = 'network'"
REFUSED = {
    "no database at all": (lambda path: path.write_bytes(b"hello" * 1000), "or not a database"),
    "of another program": (lambda path: (path.unlink(), change(path,
        "CREATE TABLE note (text TEXT)")), "not a database of this program"),
    "of an older version": (lambda path: change(path, "ALTER TABLE schema_step RENAME TO version"),
        "older version of this program: its data cannot be carried over"),
    "of 0.3.0": (lambda path: change(path, "ALTER TABLE schema_step DROP COLUMN sha256"),
        "older version of this program: its data cannot be carried over"),
    "of other statements": (lambda path: change(path, "UPDATE schema_step SET sha256 = 'other'"),
        "older version of this program: its data cannot be carried over"),
    "empty": (lambda path: path.write_bytes(b""), "not a database of this program"),
    "damaged": (spoil, "damaged"),
    "cut short": (lambda path: os.truncate(path, path.stat().st_size // 2), "damaged"),
    "of another network": (lambda path: change(path, OTHER_NETWORK), "belongs to signet"),
    "of a newer program": (lambda path: change(path, "UPDATE schema_step SET number = 9999"),
        "newer"),
}  # fmt: skip


def test_files_are_refused_that_are_no_whole_backups_of_this_shop(till, tmp_path):
    kept = backed_up(till, tmp_path / "kept.db")
    place = shutil.copy(kept, tmp_path / "place.db")
    before = content(place)
    for name, (spoilt, said) in REFUSED.items():
        file = shutil.copy(kept, tmp_path / f"{name}.db")
        spoilt(file)
        with refused(said):
            restored(till, file, place)
        assert content(place) == before and not list(tmp_path.glob(".place*")), name


def test_a_database_in_place_of_an_older_version_is_not_replaced(till, file, place):
    """Its counters cannot be read for certain: an address could be given out twice."""
    shutil.copy(file, place)
    change(place, "ALTER TABLE schema_step DROP COLUMN sha256")
    before = content(place)
    with refused("is of an older version of this program"):
        restored(till, file, place)
    assert content(place) == before


def test_the_database_itself_and_a_missing_file_are_refused(till, tmp_path):
    own = str(tmp_path / "blocktill.db")
    assert "itself" in Terminal(till).run("restore", own, "--yes", status=1)[1]
    assert (
        "no file"
        in Terminal(till).run("restore", str(tmp_path / "x"), "--yes", status=1)[1]
    )
    Terminal(till).run("restore", "--yes", status=2)
    Terminal(till).run("restore", own, "--in-place", status=2)


def test_while_a_service_or_a_check_uses_the_database_nothing_is_restored(
    till, file, place
):
    said = Terminal(till).run("restore", str(file), "--yes", status=1)[1]
    assert "in use" in said  # the shop of this test has it open
    url = f"sqlite:///{place}"
    with locks.only_one(open_database(url), url, "check"):
        said = Terminal(till).run(
            "restore", str(file), "--yes", status=1, **url_of(place)
        )[1]
    assert "a check" in said and not place.exists()


def test_when_the_chain_cannot_be_asked_nothing_happens(till, file, place):
    till.sandbox.switches.explorer = "down"
    said = Terminal(till).run("restore", str(file), "--yes", status=1, **url_of(place))[
        1
    ]
    assert "nothing was changed" in said and not place.exists()


def test_a_merchant_whom_only_the_database_in_place_has_is_named_and_not_lost_unasked(
    till, file, place
):
    shutil.copy(file, place)
    change(
        place,
        "INSERT INTO merchant (name, descriptor, account_key, next_index, created_ms,"
        " wallet_gap_limit) SELECT 'other', descriptor, 'x', 0, created_ms,"
        " wallet_gap_limit FROM merchant",
    )
    before = content(place)
    words = ("restore", str(file))
    said = Terminal(till).run(*words, "--yes", status=1, **url_of(place))[1]
    assert "other of this database is not in this backup" in said
    assert content(place) == before
    process = Terminal(till).start(*words, **url_of(place))
    said = process.communicate(timeout=60)[1]
    assert "other of this database is not in this backup, and will be gone" in said
    assert content(place) == before


def test_an_explorer_behind_what_was_known_is_not_believed(till, tmp_path):
    till.mine(5)
    till.shop.invoice()
    till.check()
    height = till.sandbox.chain.ledger.height
    file = backed_up(till, tmp_path / "kept.db")
    change(file, f"UPDATE block SET height = {height + 1} WHERE height = {height}")  # noqa: S608
    with refused(f"{height + 1} were known"):
        restored(till, file, tmp_path / "place.db")


def test_no_paid_address_is_given_out_twice(till, tmp_path):
    """The machine is lost with everything that came after the backup."""
    known = till.shop.invoice()
    file = backed_up(till, tmp_path / "kept.db")
    lost = [till.shop.invoice() for _ in range(60)]
    till.pay(known)
    for index in (0, 7, 50):
        till.pay(lost[index])
    till.mine()
    till.pay(lost[55])  # still in the mempool

    place = tmp_path / "new" / "blocktill.db"
    restoring = Terminal(till).start(
        "restore", str(file), "--yes", "--json", **url_of(place)
    )
    answer = json.loads(restoring.communicate(timeout=60)[0])
    assert answer["aside"] is None
    (moved,) = answer["merchants"]
    assert moved["used"] == [1, 8, 51, 56]  # the known invoice has index 0
    assert (moved["before"], moved["next_index"], moved["gap_limit"]) == (1, 157, 101)
    with on(f"sqlite:///{place}", till) as again:
        assert again.look(known)["status"] == "open"
        again.check()
        assert again.look(known)["status"] == "paid"
        fresh = [again.shop.invoice() for _ in range(3)]
    addresses = {invoice["deposit_address"] for invoice in [known, *lost]}
    assert addresses.isdisjoint(invoice["deposit_address"] for invoice in fresh)


def test_the_margin_is_what_was_asked_for_and_counts_from_the_last_used_one(
    till, tmp_path, file
):
    row = till.shop.service.db.get(merchants.BY_ID, id=till.shop.merchant_id)
    for index in (99, 200):
        address = derive(row.descriptor, index, till.settings.network)
        till.sandbox.wallet.pay(address, 10_000, till.now)
    (moved,) = restored(till, file, tmp_path / "a.db", skip=0).moves
    assert (moved.used, moved.next_index) == (
        (99,),
        100,
    )  # a hundred unused end the look
    (moved,) = restored(till, file, tmp_path / "b.db", skip=101).moves
    assert (moved.used, moved.next_index) == ((99, 200), 302)


def test_the_old_database_is_kept_and_what_it_knows_is_not_forgotten(
    till, tmp_path, file, place
):
    shutil.copy(file, place)
    change(place, "UPDATE merchant SET next_index = 5000")
    change(place, "UPDATE api_key SET revoked_ms = 1 WHERE scope = 'write'")
    before = content(place)
    _, said = Terminal(till).run("restore", str(file), "--yes", **url_of(place))
    (aside,) = tmp_path.glob("place.db.before-*")
    assert str(aside) in said and content(aside) == before
    assert aside.stat().st_mode & 0o777 == 0o600
    after = content(place)
    assert after["merchant"][0][4] == 5000
    revoked = {row[3]: row[9] for row in after["api_key"]}
    assert revoked == {"read": None, "write": 1}
    Terminal(till).run("restore", str(file), "--yes", **url_of(place))
    assert len(list(tmp_path.glob("place.db.before-*"))) == 2
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("page_size", [1024, 4096])
def test_a_backup_with_pages_of_another_size_replaces_a_database_in_wal_mode(
    till, file, place, page_size
):
    """As of a shop whose file is older than the size that new files get."""
    shutil.copy(file, place)
    change(place, "UPDATE merchant SET name = 'In place', next_index = 5000")
    before = content(file)
    with closing(open_database(f"sqlite:///{place}")) as db:
        assert [row.name for row in db.rows(merchants.ALL)] == ["In place"]
    change(file, f"PRAGMA page_size = {page_size}", "VACUUM")
    restored(till, file, place)
    with closing(open_database(f"sqlite:///{place}")) as db:
        (merchant,) = db.rows(merchants.ALL)
        mode = db.connection.execute_sql("PRAGMA journal_mode").fetchone()[0]
    assert merchant.next_index == 5000 and mode == "wal"
    after = content(place)
    assert after["merchant"][0][1] == before["merchant"][0][1] != "In place"
    assert after["invoice"] == before["invoice"]


def test_a_damaged_database_in_place_is_not_touched_but_named(till, tmp_path, file):
    place = shutil.copy(file, tmp_path / "place.db")
    for spoilt in (spoil, lambda path: path.write_bytes(b"no database " * 999)):
        spoilt(place)
        before = place.read_bytes()
        with refused(f"move it, {place}-wal"):
            restored(till, file, place)
        assert place.read_bytes() == before
    place.rename(tmp_path / "elsewhere.db")
    restored(till, file, place)
    assert content(place)["merchant"]


def test_an_idempotency_key_that_was_held_is_free(till, tmp_path, place):
    order = {"amount_usd": 25}
    key = "Idempotency-Key"
    first = till.shop.post("/invoices", order, headers={key: "order 1"})
    file = backed_up(till, tmp_path / "kept.db")
    change(
        file,
        "INSERT INTO idempotency_key (merchant_id, operation, idempotency_key, body_sha256, owner,"
        " locked_ms, created_ms, response)"
        " SELECT merchant_id, operation, 'order 2', body_sha256, 'own',"
        " locked_ms, created_ms, NULL FROM idempotency_key",
    )
    Terminal(till).run("restore", str(file), "--yes", **url_of(place))
    with on(f"sqlite:///{place}", till) as again:
        freed = again.shop.post("/invoices", order, headers={key: "order 2"})
        assert freed.status_code == 201 and freed.json["id"] != first.json["id"]
