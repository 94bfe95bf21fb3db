"""`/healthz` and `/readyz`: what is shown, what is 503, and what is not."""

import logging

import pytest
from builders import Shop, dump
from databases import ON_POSTGRES
from peewee import PeeweeException
from redis_server import RedisServer, needs_redis
from werkzeug.test import TestResponse

from btcpay.values.times import iso, to_ms
from btcpay.web.readyz import TRIED_EVERY_S, Trial
from storage import versions
from storage.queries import meta


@pytest.fixture
def checked(shop):
    meta.put(shop.service.db, meta.Key.CHECKED_AT, str(to_ms(shop.clock())))
    return shop


def ready(shop: Shop) -> TestResponse:
    return shop.client.get("/readyz")


def problems(response: TestResponse) -> dict[str, bool]:
    return {name: part["ok"] for name, part in response.json.items() if name != "ok"}


def test_a_shop_with_a_fresh_check_is_ready(checked):
    response = ready(checked)
    assert response.status_code == 200
    assert response.json == {
        "ok": True,
        "database": {"ok": True, "version": versions.VERSION},
        "check": {
            "ok": True,
            "checked_at": iso(checked.clock()),
            "height": None,
            "blocks_behind": 0,
            "tip_at": None,
        },
        "rate_limits": {"ok": True},
    }


@pytest.mark.parametrize(
    ("minutes", "max_age_min", "status"),
    [
        pytest.param(15, None, 200, id="15 minutes by default"),
        pytest.param(15.001, None, 503, id="a moment more"),
        pytest.param(59.999, "60", 200, id="within what is set"),
        pytest.param(60.001, "60", 503, id="beyond what is set"),
        pytest.param(-30, None, 503, id="ahead of the clock"),
    ],
)
def test_an_old_check_is_not_ready(open_shops, minutes, max_age_min, status):
    shop = open_shops(**({"BTCPAY_CHECK_MAX_AGE_MIN": max_age_min} if max_age_min else {}))
    meta.put(shop.service.db, meta.Key.CHECKED_AT, str(to_ms(shop.clock())))
    shop.clock.move(minutes=minutes)
    response = ready(shop)
    assert response.status_code == status
    assert problems(response) == {"database": True, "check": status == 200, "rate_limits": True}


def test_a_shop_that_was_never_checked_is_not_ready_and_says_so(shop):
    response = ready(shop)
    assert response.status_code == 503 and response.json["ok"] is False
    assert response.json["check"]["problem"] == "no check has been complete yet"


def test_a_real_check_makes_it_ready(till):
    assert ready(till.shop).status_code == 503
    till.check()
    assert ready(till.shop).status_code == 200


def test_another_version_of_the_database_is_not_ready(checked):
    checked.sql("UPDATE schema_version SET version = 9999")
    response = ready(checked)
    assert response.status_code == 503
    assert response.json["database"]["version"] == 9999
    assert f"version {versions.VERSION}" in response.json["database"]["problem"]


def test_a_database_that_cannot_be_read_is_not_ready(checked):
    checked.sql("ALTER TABLE meta RENAME TO gone")
    response = ready(checked)
    assert response.status_code == 503
    assert problems(response) == {"database": False, "check": False, "rate_limits": True}


def refuse_writes(shop: Shop) -> None:
    if ON_POSTGRES:
        shop.sql("ALTER TABLE meta ADD CONSTRAINT no_trial CHECK (name <> 'trial')")
    else:
        stop = "BEGIN SELECT RAISE(ABORT, 'no') WHERE new.name = 'trial'; END"
        shop.sql(f"CREATE TRIGGER no_trial BEFORE INSERT ON meta {stop}")


def take_writes(shop: Shop) -> None:
    if ON_POSTGRES:
        shop.sql("ALTER TABLE meta DROP CONSTRAINT no_trial")
    else:
        shop.sql("DROP TRIGGER no_trial")


def test_a_database_that_takes_no_writes_is_not_ready_until_it_does(checked):
    assert ready(checked).status_code == 200
    refuse_writes(checked)
    with pytest.raises(PeeweeException):
        meta.try_to_write(checked.service.db)  # as an order would
    for _ in range(2):
        response = ready(checked)
        assert response.status_code == 503
        assert response.json["database"]["problem"] == "it takes no writes"
        assert problems(response) == {"database": False, "check": True, "rate_limits": True}
    take_writes(checked)
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
    take_writes(checked)
    assert trial.passes()


def test_a_trial_leaves_nothing_behind(checked):
    before = dump(checked)
    meta.try_to_write(checked.service.db)
    assert dump(checked) == before


def test_alive_needs_no_database(checked):
    checked.sql("ALTER TABLE meta RENAME TO gone")
    checked.sql("ALTER TABLE schema_version RENAME TO lost")
    response = checked.client.get("/healthz")
    assert (response.status_code, response.json) == (200, {"ok": True})


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_neither_has_limits_or_their_headers(checked, path):
    answers = [checked.client.get(path) for _ in range(150)]
    assert {answer.status_code for answer in answers} == {200}
    assert not [name for name, _ in answers[0].headers if name.startswith("X-RateLimit")]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_both_are_for_reading(checked, path):
    assert checked.client.post(path).status_code == 405
    assert checked.client.head(path).status_code == 200


@needs_redis
def test_redis_away_is_shown_and_sells_on(tmp_path, open_shops, caplog):
    caplog.set_level(logging.ERROR)
    with RedisServer(tmp_path) as redis:
        shop = open_shops(BTCPAY_RATE_LIMIT_STORE=redis.url.replace("//", "//:hunter2@"))
        meta.put(shop.service.db, meta.Key.CHECKED_AT, str(to_ms(shop.clock())))
    response = ready(shop)
    assert response.status_code == 200 and response.json["ok"] is True
    assert response.json["rate_limits"]["ok"] is False
    assert "hunter2" not in response.text + caplog.text and redis.url not in response.text
