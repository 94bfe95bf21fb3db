"""API keys through the real command line, and their secrets."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from btcpay.merchants import keys
from tests.support.builders import new_xpub, until
from tests.support.databases import about_sqlite, new_database
from tests.support.forge import forge

pytestmark = pytest.mark.both_databases

SECRET = re.compile("sk_test_[0-9A-Za-z]{43}")
NOBODY = "sk_test_" + "0" * 43


def blocktill(shop, *arguments, status=0, **environ):
    ended = forge().run(shop.environ | environ, list(arguments))
    assert ended.status == status, ended.errors
    return ended.output


def issue(shop, scope, *more):
    return blocktill(shop, "key", "issue", "shop", "--scope", scope, *more).strip()


def listed(shop):
    return {
        row["last_four"]: row
        for row in json.loads(blocktill(shop, "key", "list", "--json"))
    }


def status_of(shop, key, method="GET"):
    ask = shop.get if method == "GET" else shop.post
    return ask("/payment-links", key=key).status_code


def test_an_issued_key_is_printed_alone_and_once_and_works_with_its_scope(shop):
    issued = json.loads(issue(shop, "write", "--name", "till", "--json"))
    assert (set(issued), issued["scope"]) == (
        {"id", "scope", "name", "secret"},
        "write",
    )
    secret = issue(shop, "read")
    for key, may_post in ((secret, 403), (issued["secret"], 201)):
        assert SECRET.fullmatch(key)
        assert (status_of(shop, key), status_of(shop, key, "POST")) == (200, may_post)
    assert secret not in blocktill(shop, "key", "list")
    assert secret not in blocktill(shop, "key", "list", "--json")


def test_a_mainnet_key_says_that_it_is_live(tmp_path, shop):
    mainnet = {
        "BLOCKTILL_NETWORK": "mainnet",
        "BLOCKTILL_DATABASE_URL": new_database(tmp_path, "mainnet"),
        "BLOCKTILL_EXPLORERS": "http://127.0.0.1:9",
    }
    # The zpub of BIP84's test vectors.
    zpub = (
        "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUk"
        "gDKf31mGDtKsAYz2oz2AGutZYs"
    )
    blocktill(
        shop,
        "merchant",
        "add",
        "live",
        "--xpub",
        zpub,
        "--yes",
        "--skip",
        "0",
        **mainnet,
    )
    secret = blocktill(
        shop, "key", "issue", "live", "--scope", "read", **mainnet
    ).strip()
    assert re.fullmatch("sk_live_[0-9A-Za-z]{43}", secret)


def test_a_key_needs_a_merchant_and_a_scope(shop):
    assert blocktill(shop, "key", "issue", "nobody", "--scope", "read", status=1) == ""
    for arguments in ([], ["--scope", "admin"], ["--scope", ""]):
        assert blocktill(shop, "key", "issue", "shop", *arguments, status=2) == ""


def test_a_key_belongs_to_the_merchant_that_it_was_issued_to(shop):
    shop.link()
    blocktill(
        shop, "merchant", "add", "second", "--xpub", new_xpub(), "--yes", "--skip", "0"
    )
    second = blocktill(shop, "key", "issue", "second", "--scope", "read").strip()
    assert shop.get("/payment-links", second).json["data"] == []
    assert len(shop.get("/payment-links").json["data"]) == 1


def test_the_list_says_whose_key_it_is_and_when_it_was_used(shop):
    secret = issue(shop, "read", "--name", "till")
    row = listed(shop)[secret[-4:]]
    assert (row["merchant"], row["scope"], row["name"]) == ("shop", "read", "till")
    assert row["last_used_at"] is None and row["revoked_at"] is None
    assert status_of(shop, secret) == 200
    used = until(
        lambda: listed(shop)[secret[-4:]]["last_used_at"], "the note of the use"
    )
    assert datetime.fromisoformat(used) == shop.clock()


def test_a_revoked_key_alone_is_unauthorized_from_then_on(shop):
    secret = issue(shop, "read")
    assert status_of(shop, secret) == 200
    blocktill(shop, "key", "revoke", listed(shop)[secret[-4:]]["id"])
    shop.clock.at = datetime.fromisoformat(listed(shop)[secret[-4:]]["revoked_at"])
    assert status_of(shop, secret) == 401
    shop.clock.move(days=1000)
    assert (status_of(shop, secret), status_of(shop, shop.read_key)) == (401, 200)


@pytest.mark.parametrize("command", ["revoke", "rotate"])
def test_an_unknown_or_revoked_key_is_neither_revoked_nor_rotated(shop, command):
    assert blocktill(shop, "key", command, "key_" + "0" * 24, status=1) == ""
    key_id = shop.key_ids[shop.read_key]
    blocktill(shop, "key", "revoke", key_id)
    assert blocktill(shop, "key", command, key_id, status=1) == ""
    alive = [row["id"] for row in listed(shop).values() if row["revoked_at"] is None]
    assert alive == [shop.key_ids[shop.write_key]]


@pytest.mark.parametrize(
    ("arguments", "hours"), [([], 24), (["--grace", "2"], 2), (["--grace", "0"], 0)]
)
def test_the_old_secret_works_until_its_grace_is_over_and_the_new_is_like_it(
    shop, arguments, hours
):
    old = issue(shop, "read", "--name", "till")
    before = datetime.now(shop.clock().tzinfo)
    new = blocktill(
        shop, "key", "rotate", listed(shop)[old[-4:]]["id"], *arguments
    ).strip()
    assert SECRET.fullmatch(new) and new != old
    assert status_of(shop, new, "POST") == 403
    row = listed(shop)[new[-4:]]
    assert (row["merchant"], row["scope"], row["name"]) == ("shop", "read", "till")
    ends_at = datetime.fromisoformat(listed(shop)[old[-4:]]["revoked_at"])
    assert (
        timedelta(0) <= ends_at - before - timedelta(hours=hours) < timedelta(minutes=1)
    )
    shop.clock.at = ends_at - timedelta(milliseconds=1)
    assert (status_of(shop, old), status_of(shop, new)) == (200, 200)
    shop.clock.at = ends_at
    assert (status_of(shop, old), status_of(shop, new)) == (401, 200)


def test_a_key_in_its_grace_can_be_revoked_at_once(shop):
    key_id = shop.key_ids[shop.read_key]
    blocktill(shop, "key", "rotate", key_id)
    blocktill(shop, "key", "revoke", key_id)
    shop.clock.move(minutes=5)
    assert status_of(shop, shop.read_key) == 401


def test_a_grace_that_is_no_number_of_hours_is_refused(shop):
    key_id = shop.key_ids[shop.read_key]
    for grace in ("-1", "8761", "1.5", "soon"):
        assert (
            blocktill(shop, "key", "rotate", key_id, "--grace", grace, status=2) == ""
        )
    shop.clock.move(days=400)
    assert status_of(shop, shop.read_key) == 200


@about_sqlite
def test_no_secret_is_in_the_database_only_its_sha256(shop):
    first = issue(shop, "write")
    second = blocktill(shop, "key", "rotate", listed(shop)[first[-4:]]["id"]).strip()
    for secret in (first, second):
        status_of(shop, secret)
    status_of(shop, NOBODY)
    path = Path(shop.environ["BLOCKTILL_DATABASE_URL"].removeprefix("sqlite:///"))
    files = {
        file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()
    }
    assert {path.name, f"{path.name}-wal"} <= set(files)
    together = b"".join(files.values())
    for secret in (first, second, shop.write_key, NOBODY):
        assert secret.encode() not in together
        assert secret[8:].encode() not in together
    assert keys.sha256_of(first).encode() in together


def test_a_fault_while_a_key_is_looked_up_logs_no_secret(shop, caplog):
    shop.sql("ALTER TABLE api_key RENAME TO gone")
    answer = shop.get("/balance")
    assert (answer.status_code, answer.json["error"]["code"]) == (500, "server_error")
    assert "Traceback" in caplog.text
    assert (
        shop.read_key not in caplog.text
        and keys.sha256_of(shop.read_key) not in caplog.text
    )
