"""`/healthz` and `/readyz`: what is shown, what is 503, and what is not."""

import logging
from datetime import datetime, timedelta

import pytest
from peewee import PeeweeException

from btcpay.values.times import iso
from btcpay.web.readyz import TRIED_EVERY_S, Trial
from storage import versions
from storage.queries import meta
from tests.support.builders import dump
from tests.support.redis_server import RedisServer, needs_redis


@pytest.fixture
def checked(shop):
    meta.put_time(shop.service.db, meta.Key.CHECKED_MS, shop.clock())
    return shop


def ready(shop):
    return shop.client.get("/readyz")


def problems(response):
    return {name: part["ok"] for name, part in response.json.items() if name != "ok"}


def test_a_shop_with_a_fresh_check_is_ready(checked):
    response = ready(checked)
    assert response.status_code == 200
    assert response.json == {
        "ok": True,
        "database": {"ok": True, "version": versions.VERSION},
        "check": {
            "ok": True, "checked_at": iso(checked.clock()), "height": None, "blocks_behind": 0,
            "tip_at": None, "previews_late": 0,
        },
        "rate_limits": {"ok": True},
    }  # fmt: skip


def test_an_old_check_is_not_ready(open_shops):
    shop = open_shops(BLOCKTILL_CHECK_MAX_AGE_MIN="60")
    meta.put_time(shop.service.db, meta.Key.CHECKED_MS, shop.clock())
    for minutes, status in ((60, 200), (1, 503)):
        shop.clock.move(minutes=minutes)
        response = ready(shop)
        assert response.status_code == status
        assert problems(response) == {
            "database": True,
            "check": status == 200,
            "rate_limits": True,
        }


def test_a_shop_is_ready_once_a_check_was_complete(till):
    response = ready(till.shop)
    assert response.status_code == 503 and response.json["ok"] is False
    assert response.json["check"]["problem"] == "no check has been complete yet"
    till.check()
    assert ready(till.shop).status_code == 200


def test_another_version_of_the_database_is_not_ready(checked):
    checked.sql("UPDATE schema_step SET number = 9999")
    response = ready(checked)
    assert response.status_code == 503
    assert response.json["database"]["version"] == 9999
    assert f"version {versions.VERSION}" in response.json["database"]["problem"]


def test_a_database_that_cannot_be_read_is_not_ready(checked):
    checked.sql("ALTER TABLE meta RENAME TO gone")
    response = ready(checked)
    assert response.status_code == 503
    assert problems(response) == {
        "database": False,
        "check": False,
        "rate_limits": True,
    }


def refuse_writes(shop):
    stop = "BEGIN SELECT RAISE(ABORT, 'no') WHERE new.name = 'trial'; END"
    shop.sql(f"CREATE TRIGGER no_trial BEFORE INSERT ON meta {stop}")


def test_a_database_that_takes_no_writes_is_not_ready_until_it_does(checked):
    assert ready(checked).status_code == 200
    refuse_writes(checked)
    with pytest.raises(PeeweeException):
        meta.try_to_write(checked.service.db)  # as an order would
    for _ in range(2):
        response = ready(checked)
        assert response.status_code == 503
        assert response.json["database"]["problem"] == "it takes no writes"
        assert problems(response) == {
            "database": False,
            "check": True,
            "rate_limits": True,
        }
    checked.sql("DROP TRIGGER no_trial")
    assert ready(checked).status_code == 200


def test_who_asks_makes_it_write_once_a_minute_and_no_oftener(checked):
    at_s = [1000.0]
    trial = Trial(checked.service.db, lambda: at_s[0])
    assert trial.passes()
    refuse_writes(checked)
    at_s[0] += TRIED_EVERY_S - 0.001
    assert trial.passes()
    at_s[0] += 0.001
    assert not trial.passes()
    checked.sql("DROP TRIGGER no_trial")
    assert trial.passes()


def test_a_trial_leaves_nothing_behind(checked):
    before = dump(checked)
    meta.try_to_write(checked.service.db)
    assert dump(checked) == before


def test_alive_needs_no_database(checked):
    checked.sql("ALTER TABLE meta RENAME TO gone")
    checked.sql("ALTER TABLE schema_step RENAME TO lost")
    response = checked.client.get("/healthz")
    assert (response.status_code, response.json) == (200, {"ok": True})


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_neither_has_limits_or_is_for_writing(checked, path):
    answers = [checked.client.get(path) for _ in range(150)]
    assert {answer.status_code for answer in answers} == {200}
    assert not [
        name for name, _ in answers[0].headers if name.startswith("X-RateLimit")
    ]
    assert checked.client.post(path).status_code == 405
    assert checked.client.head(path).status_code == 200


@needs_redis
def test_redis_away_is_shown_and_sells_on(tmp_path, open_shops, caplog):
    caplog.set_level(logging.ERROR)
    with RedisServer(tmp_path) as redis:
        shop = open_shops(
            BLOCKTILL_RATE_LIMIT_STORE=redis.url.replace("//", "//:hunter2@")
        )
        meta.put_time(shop.service.db, meta.Key.CHECKED_MS, shop.clock())
    response = ready(shop)
    assert response.status_code == 200 and response.json["ok"] is True
    assert response.json["rate_limits"]["ok"] is False
    assert (
        "hunter2" not in response.text + caplog.text and redis.url not in response.text
    )


def test_who_is_told_of_a_fault_is_said_if_it_is_set(open_shops):
    path = "/.well-known/security.txt"
    assert open_shops().client.get(path).status_code == 404
    shop = open_shops(BLOCKTILL_SECURITY_CONTACT="mailto:me@example.com")
    said = shop.client.get(path)
    assert said.content_type.startswith("text/plain")
    contact, expires = said.text.splitlines()
    assert contact == "Contact: mailto:me@example.com"
    until = datetime.fromisoformat(expires.removeprefix("Expires: "))
    assert timedelta(days=1) < until - shop.clock() < timedelta(days=365)
