"""A backup is restored in a browser: into an empty shop, which runs on with its data."""

import fcntl
import io
import re
import shutil
import sqlite3
import tempfile
import threading
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
import requests
from flask import Flask

from btcpay.backup import from_browser, pending
from btcpay.merchants.account import derive
from btcpay.merchants.first_run import start_url
from btcpay.parts.merchant_pages import restore, upload
from btcpay.values.errors import CommandError
from btcpay.web import rate_limits
from storage import locks, versions
from storage.database import open_database
from storage.queries import merchants, receivers
from tests.support.builders import Live, dump, open_shop, until
from tests.support.databases import about_sqlite
from tests.support.fake_esplora import silent
from tests.support.measured import peak_bytes
from tests.support.merchant_browser import FROM_THIS_SITE, ON, MerchantBrowser
from tests.support.other_database import answers, backed_up, change, lived_in, rows_of
from tests.support.payer import Page
from tests.support.serving import Serving

pytestmark = pytest.mark.both_databases
PASSWORD = "Grüße vom Hafen 17"


@pytest.fixture
def till(open_tills, tmp_path):
    """The old shop, on a SQLite file whatever this run of the tests is about."""
    url = f"sqlite:///{tmp_path}/blocktill.db"
    return open_tills(BLOCKTILL_DATABASE_URL=url, **ON)


@pytest.fixture
def file(till, tmp_path):
    """A backup of the old shop with one invoice."""
    till.shop.invoice()
    return backed_up(till, tmp_path / "kept.db")


@pytest.fixture
def open_empty(till, tmp_path, ticker, clock):
    """Opens an empty shop beside the same chain, with other settings."""
    opened = []

    def open_empty(**environ):
        chain = {"BLOCKTILL_EXPLORERS": till.environ["BLOCKTILL_EXPLORERS"]}
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        environ = {**ON, **chain, **environ}
        opened.append(open_shop(folder, ticker.url, clock, empty=True, **environ))
        return opened[-1]

    yield open_empty
    for shop in opened:
        shop.close()


@pytest.fixture
def empty(open_empty):
    return open_empty()


class Silent(Serving):
    """An explorer that keeps everybody waiting."""

    def __init__(self):
        super().__init__()
        self.asked = 0
        self._released = threading.Event()

    def answer(self, _request):
        self.asked += 1
        return silent(self._released)

    def __exit__(self, *error):
        self._released.set()
        super().__exit__(*error)


def start_of(shop):
    """The path of a new set-up link."""
    return start_url(shop.service.db, "")


def send(shop, path, content, client=None, name="monday.db", **fields):
    """Uploads a file as the page does; the answer."""
    data = {"backup": (io.BytesIO(content), name), **fields}
    return (client or shop.client).post(
        f"{path}/restore",
        data=data,
        headers=FROM_THIS_SITE,
        content_type="multipart/form-data",
    )


def examined(shop, path, content, client=None, **fields):
    """Uploads a file, waits for its examination; the path and the page that it has then."""
    client = client or shop.client
    sent = send(shop, path, content, client, **fields)
    assert sent.status_code == 303, sent.text
    there = re.sub(r"^(\.\./)+", "/", sent.headers["Location"])

    def end():
        answer = client.get(there)
        return None if "Refresh" in answer.headers else answer

    return there, until(end, "the examination")


def agree(client, there, **fields):
    return client.post(there, data=fields or {"agree": "1"}, headers=FROM_THIS_SITE)


def problem_of(answer):
    assert answer.status_code == 400, answer.text
    return Page(answer.text).texts["problem"]


def leftovers(shop):
    return pending.discard_idle(shop.service.settings)


def folders(shop):
    """The uploaded backups that lie on the disk."""
    place, beginning = pending._place(shop.service.settings)
    return sorted(place.glob(f"{beginning}*"))


def test_all_that_a_shop_had_is_there_and_this_browser_is_logged_in(
    till, empty, tmp_path
):
    lived_in(till, tmp_path)
    till.shop.sql("DELETE FROM receiver WHERE transport = 'command'")
    before = answers(till)
    file = backed_up(till, tmp_path / "kept.db")
    old = rows_of(f"sqlite:///{file}")
    client = empty.client
    path = start_of(empty)
    there, question = examined(empty, path, file.read_bytes(), client)
    page = Page(question.text)
    account = till.shop.service.db.rows(merchants.ALL)[0].descriptor
    for index in range(3):
        assert derive(account, index, till.settings.network) in page.source
    assert not empty.service.db.rows(merchants.ALL)
    done = agree(client, there)
    assert (done.status_code, done.headers["Location"]) == (303, "../../../../merchant")
    new = rows_of(empty.environ["BLOCKTILL_DATABASE_URL"])
    ways_in = {"file_link", "merchant_login", "merchant_session"}
    for table in old.keys() - {"merchant", "meta", "explorer_use"} - ways_in:
        assert new[table] == old[table], table
    assert len(new["merchant_session"]) == 1
    assert not new["merchant_login"] and not new["file_link"]
    assert client.get("/merchant").status_code == 200
    empty.read_key = till.shop.read_key
    empty.write_key = till.shop.write_key
    empty.merchant_id = till.shop.merchant_id
    again = type(till)(empty, till.sandbox, till.clock)
    assert answers(again) == before
    assert folders(empty) == []
    assert client.get(path).status_code == client.get(there).status_code == 404


def test_the_next_address_is_behind_those_that_the_old_shop_gave_out_since(
    till, file, empty
):
    after = [till.shop.invoice() for _ in range(3)]
    till.pay(after[-1])
    till.mine()
    client = empty.client
    there, question = examined(
        empty, start_of(empty), file.read_bytes(), client, skip="7"
    )
    assert "up to number 3" in question.text and "number 11" in question.text
    agree(client, there)
    (row,) = empty.service.db.rows(merchants.ALL)
    assert row.next_index == 11
    empty.merchant_id = row.id
    account = row.descriptor
    fresh = empty.invoice()["deposit_address"]
    assert fresh == derive(account, 11, till.settings.network)
    assert fresh not in {invoice["deposit_address"] for invoice in after}


def test_no_session_of_the_backup_opens_anything(till, file, tmp_path, empty):
    stranger = MerchantBrowser(till.shop).log_in()
    cookie = stranger.client.get_cookie("merchant").value
    file = backed_up(till, tmp_path / "with a session.db")
    client = empty.client
    there, _ = examined(empty, start_of(empty), file.read_bytes(), client)
    agree(client, there)
    other = empty.client
    other.set_cookie("merchant", cookie)
    assert other.get("/merchant").status_code == 401
    assert client.get("/merchant").status_code == 200


def test_by_the_owners_password_the_session_is_the_passwords_also_after_a_restart(
    till, file, open_empty
):
    environ = {"BLOCKTILL_OWNER_PASSWORD": PASSWORD}
    shop = open_empty(**environ)
    client = shop.client

    def enter(client):
        return client.post(
            "/merchant/login", data={"password": PASSWORD}, headers=FROM_THIS_SITE
        )

    path = enter(client).headers["Location"].removeprefix("..")
    till.shop.add_merchant("other")
    file = backed_up(till, file.with_name("two.db"))
    there, _ = examined(shop, path, file.read_bytes(), client)
    assert agree(client, there).headers["Location"].endswith("/merchant/shops")
    url = {"BLOCKTILL_DATABASE_URL": shop.environ["BLOCKTILL_DATABASE_URL"]}
    restarted = open_empty(**environ, **url)
    again = restarted.client
    again.set_cookie("merchant", client.get_cookie("merchant").value)
    assert again.get("/merchant/shops").status_code == 200
    assert enter(restarted.client).status_code == 303


def test_a_program_that_received_events_is_shown_and_not_restored(till, file, empty):
    """Whoever uploads a file may have no right to run anything on the machine."""
    change(
        file,
        "INSERT INTO receiver (id, merchant_id, transport, command, created_ms)"
        " SELECT 'whk_1', id, 'command', 'sh -c <b>', 0 FROM merchant",
    )
    client = empty.client
    there, question = examined(empty, start_of(empty), file.read_bytes(), client)
    assert "sh -c &lt;b&gt;" in question.text
    agree(client, there)
    assert empty.service.db.rows(merchants.ALL)
    assert not any(row.command for row in empty.service.db.rows(receivers.LIST))


def test_who_does_not_agree_keeps_the_empty_shop_and_no_file_is_left(file, empty):
    client = empty.client
    path = start_of(empty)
    before = dump(empty)
    there, _ = examined(empty, path, file.read_bytes(), client)
    assert len(folders(empty)) == 1
    answer = agree(client, there, drop="1")
    assert answer.status_code == 303 and answer.headers["Location"].endswith("/restore")
    assert dump(empty) == before and folders(empty) == []
    assert client.get(there).status_code == 404
    assert client.get(path).status_code == 200


def spoil(content):
    raw = bytearray(content)
    for start in range(2 * 4096, len(raw), 4096):
        raw[start : start + 64] = b"\xff" * 64
    return bytes(raw)


def changed(*statements):
    def make(content):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "changed.db"
            path.write_bytes(content)
            change(path, *statements)
            return path.read_bytes()

    return make


def of_an_empty_shop():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        versions.migrate(f"sqlite:///{path}", "regtest")
        return path.read_bytes()


REFUSED = {
    "no database at all": (lambda _: b"hello" * 1000, "not a database"),
    "an empty file": (lambda _: b"", "not a database of this program"),
    "damaged": (spoil, "damaged"),
    "cut short": (lambda content: content[: len(content) // 2], "damaged"),
    "of another network": (
        changed("UPDATE meta SET value = 'signet' WHERE name = 'network'"),
        "the file belongs to signet",
    ),
    "of a newer program": (changed("UPDATE schema_step SET number = 9999"), "newer"),
    "of another program": (
        changed("DROP TABLE output"),
        "not a database of this program",
    ),
    "with a trigger": (
        changed(
            "CREATE TRIGGER widen AFTER UPDATE ON merchant BEGIN"
            " UPDATE api_key SET scope = 'write'; END"
        ),
        "trigger widen",
    ),
    "with a view": (changed("CREATE VIEW note AS SELECT * FROM merchant"), "view note"),
    "with somebody else's address": (
        changed("UPDATE invoice SET deposit_address = 'bcrt1qw'"),
        "not the address",
    ),
    "without a merchant": (lambda _: of_an_empty_shop(), "no merchant"),
    "of a time zone that nobody knows": (
        changed("UPDATE merchant SET timezone = 'Mars/Olympus'"),
        "'Mars/Olympus' is not a time zone",
    ),
    "of a currency that nobody knows": (
        changed("UPDATE merchant SET currency = 'XXX'"),
        "'XXX' is not an ISO 4217 currency",
    ),
    "with an invoice beyond the calendar": (
        changed("UPDATE invoice SET created_ms = 9223372036854775807"),
        "is no stored time",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_is_refused_with_a_sentence_and_the_shop_stays_empty(case, file, empty):
    spoilt, expected = REFUSED[case]
    path = start_of(empty)
    before = dump(empty)
    there, answer = examined(empty, path, spoilt(file.read_bytes()))
    assert expected in problem_of(answer)
    assert str(folders(empty)[0]) not in answer.text  # nobody needs the server's paths
    assert "not examined" in problem_of(agree(empty.client, there))
    assert dump(empty) == before
    assert not list(folders(empty)[0].glob("*.db*"))
    assert empty.client.get(path).status_code == 200
    leftovers(empty)
    assert folders(empty) == []


def test_a_form_without_a_file_or_with_a_wrong_number_is_refused(file, empty):
    path = start_of(empty)
    assert "no file was chosen" in problem_of(send(empty, path, b"", name=""))
    plain = empty.client.post(
        f"{path}/restore", data={"backup": "x"}, headers=FROM_THIS_SITE
    )
    assert "no file was chosen" in problem_of(plain)
    for skip in ("-1", "x", "10001", "9" * 40):
        answer = send(empty, path, file.read_bytes(), skip=skip)
        assert "0 to 10000" in problem_of(answer)
    assert folders(empty) == []


def test_a_second_file_is_refused_and_is_never_in_memory(tmp_path):
    size = 4_000_000
    files = {"backup": (io.BytesIO(b"a"), "a.db"), "x": (io.BytesIO(bytes(size)), "b")}
    with Flask(__name__).test_request_context(method="POST", data=files):
        tracemalloc.start()
        with pytest.raises(CommandError, match="no file was chosen"):
            upload.receive_backup(tmp_path / "upload")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < size / 2


def test_what_arrives_in_half_is_refused(file, empty):
    path = start_of(empty)
    head = (
        b'--x\r\nContent-Disposition: form-data; name="backup"; filename="a.db"\r\n\r\n'
    )
    for body in (head + file.read_bytes(), head, b"--x", b""):
        answer = empty.client.post(
            f"{path}/restore",
            data=body,
            headers=FROM_THIS_SITE,
            content_type="multipart/form-data; boundary=x",
        )
        assert re.search("incomplete|no file was chosen", problem_of(answer))
    assert folders(empty) == []


def test_a_larger_file_than_any_shop_has_is_refused_unread(file, empty, monkeypatch):
    monkeypatch.setattr(upload, "MAX_BYTES", 50_000)
    answer = send(empty, start_of(empty), file.read_bytes())
    assert "at most 1024 MiB" in problem_of(answer)
    assert folders(empty) == []


def test_a_disk_with_too_little_room_takes_nothing(file, empty, monkeypatch):
    free = shutil.disk_usage(".")._replace(free=3 * file.stat().st_size)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    answer = send(empty, start_of(empty), file.read_bytes())
    assert "too little room" in problem_of(answer)
    assert folders(empty) == []


def test_when_the_chain_cannot_be_asked_no_backup_is_put_in(till, file, empty):
    till.sandbox.switches.explorer = "down"
    path = start_of(empty)
    before = dump(empty)
    _, answer = examined(empty, path, file.read_bytes())
    assert "nothing was changed, the chain must be asked first" in problem_of(answer)
    assert dump(empty) == before


def test_without_the_token_nothing_is_taken_and_each_try_is_counted(file, empty):
    path = start_of(empty)
    there, _ = examined(empty, path, file.read_bytes())
    id = there.rpartition("/")[2]
    wrong = "/merchant/start/wrong"
    client = empty.client
    tries = [
        client.get(f"{wrong}/restore"),
        send(empty, wrong, file.read_bytes()),
        client.get(f"{wrong}/restore/{id}"),
        agree(client, f"{wrong}/restore/{id}"),
    ]
    assert [answer.status_code for answer in tries] == [404] * 4
    assert not empty.service.db.rows(merchants.ALL) and len(folders(empty)) == 1
    for _ in range(rate_limits.FAILED_AUTH.limit - len(tries)):
        client.get(f"{wrong}/restore")
    assert client.get(f"{wrong}/restore").status_code == 429


def test_no_other_site_sends_a_file_or_agrees(file, empty):
    path = start_of(empty)
    there, _ = examined(empty, path, file.read_bytes())
    cross = {"Sec-Fetch-Site": "cross-site"}
    data = {"backup": (io.BytesIO(file.read_bytes()), "monday.db")}
    sent = empty.client.post(f"{path}/restore", data=data, headers=cross)
    agreed = empty.client.post(there, data={"agree": "1"}, headers=cross)
    assert sent.status_code == agreed.status_code == 403
    assert not empty.service.db.rows(merchants.ALL)


@pytest.mark.parametrize(
    "id", ["x", "../../etc", "0" * 24, "..%2f..%2fetc", "\u0660" * 24]
)
def test_no_id_leads_anywhere_else(empty, id):
    path = f"{start_of(empty)}/restore/{id}"
    assert empty.client.get(path).status_code in (401, 404)
    assert agree(empty.client, path).status_code in (401, 404)


def test_a_shop_that_has_a_merchant_takes_none(file, empty):
    path = start_of(empty)
    there, _ = examined(empty, path, file.read_bytes())
    empty.add_merchant("meanwhile")
    client = empty.client
    assert agree(client, there).status_code == 404
    assert send(empty, path, file.read_bytes()).status_code == 404
    names = [row.name for row in empty.service.db.rows(merchants.ALL)]
    assert names == ["meanwhile"]


def test_a_merchant_that_is_made_in_the_last_moment_is_not_lost(
    file, empty, monkeypatch
):
    there, _ = examined(empty, start_of(empty), file.read_bytes())
    put_in = from_browser.put_in

    def late(*arguments):
        empty.add_merchant("meanwhile")
        return put_in(*arguments)

    monkeypatch.setattr(restore, "put_in", late)
    answer = agree(empty.client, there)
    assert "already has the merchant 'meanwhile'" in problem_of(answer)


def test_a_text_that_postgresql_refuses_is_said_and_nothing_is_restored(file, empty):
    """PostgreSQL takes no NUL in a text; SQLite does."""
    change(file, "UPDATE merchant SET name = 'a' || char(0) || 'b'")
    path = start_of(empty)
    there, _ = examined(empty, path, file.read_bytes())
    before = dump(empty)
    answer = agree(empty.client, there)
    if empty.service.db.is_server:
        assert "nothing was carried over" in problem_of(answer)
        assert dump(empty) == before and empty.client.get(path).status_code == 200
    else:
        assert answer.status_code == 303


def test_an_answer_after_an_hour_is_too_late(file, empty):
    there, _ = examined(empty, start_of(empty), file.read_bytes())
    empty.clock.move(minutes=61)
    assert "more than an hour ago" in problem_of(agree(empty.client, there))
    assert not empty.service.db.rows(merchants.ALL)


def test_one_is_examined_at_a_time_and_a_new_one_takes_the_place_of_an_idle_one(
    file, empty
):
    path = start_of(empty)
    first, _ = examined(empty, path, file.read_bytes())
    second, _ = examined(empty, path, file.read_bytes())
    assert empty.client.get(first).status_code == 404
    found = pending.find(empty.service.settings, second.rpartition("/")[2])
    found.hold()
    assert "wait for it" in problem_of(send(empty, path, file.read_bytes()))
    found.release()
    assert len(folders(empty)) == 1


def test_while_it_is_examined_the_page_looks_again_by_itself(
    till, file, empty, monkeypatch
):
    may_end = threading.Event()
    examine = from_browser.examine

    def slow(*arguments):
        may_end.wait(60)
        examine(*arguments)

    monkeypatch.setattr(restore, "examine", slow)
    path = start_of(empty)
    sent = send(empty, path, file.read_bytes())
    there = re.sub(r"^(\.\./)+", "/", sent.headers["Location"])
    waiting = empty.client.get(there)
    assert waiting.headers["Refresh"] == "3" and "waiting" in Page(waiting.text).texts
    for fields in ({"agree": "1"}, {"drop": "1"}):
        assert agree(empty.client, there, **fields).headers["Location"].endswith(there)
    assert leftovers(empty)  # it is not removed below the thread
    may_end.set()
    until(lambda: "Refresh" not in empty.client.get(there).headers, "its end")
    assert "agree" in Page(empty.client.get(there).text).attributes


def test_nothing_is_asked_before_the_answer_is_taken(file, empty):
    """The report is written a moment before the lock is freed."""
    there, _ = examined(empty, start_of(empty), file.read_bytes())
    found = pending.find(empty.service.settings, there.rpartition("/")[2])
    found.hold()
    assert empty.client.get(there).headers["Refresh"] == "3"
    found.release()
    assert "agree" in Page(empty.client.get(there).text).attributes


def test_two_who_ask_at_once_do_not_take_each_other_for_the_examination(file, empty):
    there, _ = examined(empty, start_of(empty), file.read_bytes())
    found = pending.find(empty.service.settings, there.rpartition("/")[2])
    with found._lock.open("a", encoding="ascii") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not found.is_held()


def test_an_examination_whose_process_was_killed_is_said_to_be_interrupted(
    file, empty, monkeypatch
):
    monkeypatch.setattr(restore, "examine", lambda *_: None)
    path = start_of(empty)
    sent = send(empty, path, file.read_bytes())
    there = re.sub(r"^(\.\./)+", "/", sent.headers["Location"])
    answer = until(
        lambda: (got := empty.client.get(there)).status_code == 400 and got, "it"
    )
    assert "interrupted" in problem_of(answer)
    assert folders(empty) == []


def test_it_waits_for_a_check_that_runs(file, empty):
    there, _ = examined(empty, start_of(empty), file.read_bytes())
    url = empty.environ["BLOCKTILL_DATABASE_URL"]
    answers = []

    def press():
        answers.append(agree(empty.client, there))
        empty.service.db.close()

    with closing(open_database(url)) as db, locks.only_one(db, url, "check"):
        thread = threading.Thread(target=press)
        thread.start()
        thread.join(0.5)
        assert not answers and not empty.service.db.rows(merchants.ALL)
    thread.join(60)
    assert answers[0].status_code == 303


def test_a_button_that_is_pressed_twice_restores_once_and_both_answers_log_in(
    file, empty, monkeypatch
):
    """A browser shows the answer to the second press, and drops the first one's."""
    there, _ = examined(empty, start_of(empty), file.read_bytes())
    clients = [empty.client, empty.client]
    answers = []
    arrived = threading.Semaphore(0)

    def find(settings, id):
        found = pending.find(settings, id)
        arrived.release()
        return found

    def press(client):
        answers.append(agree(client, there))

    monkeypatch.setattr(restore, "find", find)
    url = empty.environ["BLOCKTILL_DATABASE_URL"]
    threads = [threading.Thread(target=press, args=(client,)) for client in clients]
    with closing(open_database(url)) as db, locks.only_one(db, url, "check"):
        for thread in threads:
            thread.start()
            assert arrived.acquire(timeout=60)
    for thread in threads:
        thread.join(60)
    assert [answer.status_code for answer in answers] == [303, 303]
    for client in clients:
        assert client.get("/merchant").status_code == 200
    assert len(empty.service.db.rows(merchants.ALL)) == 1


@about_sqlite
def test_the_number_of_every_next_row_is_new(till, tmp_path, empty):
    lived_in(till, tmp_path)
    till.shop.sql("UPDATE sqlite_sequence SET seq = 900 WHERE name = 'event'")
    file = backed_up(till, tmp_path / "kept.db")
    with closing(sqlite3.connect(file)) as db:
        highest = set(db.execute("SELECT name, seq FROM sqlite_sequence"))
    assert ("event", 900) in highest
    there, _ = examined(empty, start_of(empty), file.read_bytes())
    agree(empty.client, there)
    new = set(empty.sql("SELECT name, seq FROM sqlite_sequence").fetchall())
    assert highest - {("merchant_login", 1)} <= new
    assert empty.add_merchant("second") == 2


def test_a_backup_that_waits_is_removed_when_the_service_starts(file, open_empty):
    shop = open_empty()
    examined(shop, start_of(shop), file.read_bytes())
    assert len(folders(shop)) == 1
    url = shop.environ["BLOCKTILL_DATABASE_URL"]
    open_empty(BLOCKTILL_DATABASE_URL=url)
    assert folders(shop) == []


LARGE = {
    "that is read to examine it": (
        "UPDATE invoice SET description = hex(zeroblob(40000000))"
    ),
    "that is only copied": "INSERT INTO brand (merchant_id, logo, logo_type,"
    " logo_sha256) VALUES (1, zeroblob(70000000), 'image/png', 'x')",
}


@pytest.mark.parametrize("case", LARGE)
def test_a_value_above_any_rows_size_is_refused_before_it_fills_the_memory(
    case, file, empty
):
    change(file, LARGE[case])
    path = start_of(empty)
    before = dump(empty)
    there, answer = examined(empty, path, file.read_bytes())
    if case == "that is only copied":
        answer = agree(empty.client, there)
    assert "too big" in problem_of(answer)
    assert dump(empty) == before


def test_a_large_backup_goes_through_a_service_whose_memory_does_not_grow_by_it(
    file, empty, tmp_path
):
    size = 60_000_000
    change(
        file,
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 600)"
        " INSERT INTO meta SELECT 'pad ' || n, printf('%0100000d', n) FROM n",
    )
    assert file.stat().st_size > size
    path = start_of(empty)
    with Live(empty, tmp_path) as live, requests.Session() as browser:
        browser.headers.update(FROM_THIS_SITE)
        before = peak_bytes(live.pid)
        with file.open("rb") as content:
            page = browser.post(
                f"{live.url}{path}/restore", files={"backup": content}, timeout=60
            )
        there = page.url
        until(lambda: "agree" in browser.get(there, timeout=60).text, "the examination")
        done = browser.post(there, data={"agree": "1"}, timeout=60)
        assert done.status_code == 200 and done.url.endswith("/merchant")
        assert peak_bytes(live.pid) - before < size / 2
    assert len(empty.service.db.rows(merchants.ALL)) == 1


def test_a_service_that_is_killed_while_it_examines_leaves_an_empty_shop(
    till, file, empty, tmp_path
):
    path = start_of(empty)
    before = dump(empty)
    with Silent() as silent:
        live = Live(empty, tmp_path, BLOCKTILL_EXPLORERS=silent.root)
        with requests.Session() as browser, file.open("rb") as content:
            browser.headers.update(FROM_THIS_SITE)
            page = browser.post(
                f"{live.url}{path}/restore", files={"backup": content}, timeout=60
            )
            assert "waiting" in Page(page.text).texts
            until(lambda: silent.asked, "the chain to be asked")
            live.kill()
    assert len(folders(empty)) == 1
    there = page.url.removeprefix(live.url)
    # The worker's lock ends with it, a moment after its master.
    answer = until(
        lambda: (shown := empty.client.get(there)).status_code == 400 and shown,
        "the end of the lock",
    )
    assert "interrupted" in problem_of(answer)
    assert dump(empty) == before and folders(empty) == []
