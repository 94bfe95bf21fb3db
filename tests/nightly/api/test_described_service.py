"""The service keeps to its OpenAPI document, whatever requests are made from that."""

import ipaddress
import itertools

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS

import app
from btcpay.api import openapi
from btcpay.settings.settings import read
from tests.support.builders import Clock, open_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory, ticker):
    ticker.reset()
    folder = tmp_path_factory.mktemp("shop")
    behind_a_proxy = {"BLOCKTILL_TRUSTED_PROXIES": "1"}
    with open_shop(folder, ticker.url, Clock(), **behind_a_proxy) as opened:
        yield opened


@pytest.fixture(scope="module")
def keys(shop):
    return itertools.cycle([shop.issue("write") for _ in range(200)])


@pytest.fixture(scope="module")
def addresses():
    """Ever another address to ask from: schemathesis tries each operation with invalid keys."""
    return (
        str(ipaddress.IPv4Address("10.0.0.0") + number) for number in itertools.count(1)
    )


# Made without a service, since pytest asks for the operations before any fixture is there.
# The key is the test's own business: generated ones would only be overwritten by it.
described = schemathesis.openapi.from_dict(
    openapi.document(read({}).base_url, app.OPERATIONS),
    config=schemathesis.Config.from_dict(
        {"generation": {"with-security-parameters": False}}
    ),
)


def test_the_served_document_is_the_one_that_the_service_is_held_to(shop):
    assert shop.get("/openapi.json", "").json == described.raw_schema


@described.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_service_keeps_to_its_description(case, shop, keys, addresses):
    # In this process: a server in front would refuse a long query by a status of its own.
    case.operation.app = case.operation.schema.app = shop.app
    # Not positive_data_acceptance for create-payment-link: that the lower bound must not exceed
    # the upper one is beyond JSON Schema, which compares no two fields.
    excluded = (
        [CHECKS.get_one("positive_data_acceptance")]
        if case.operation.definition.raw["operationId"] == "create-payment-link"
        else []
    )
    case.call_and_validate(
        base_url="http://localhost",
        headers={
            "Authorization": f"Bearer {next(keys)}",
            "X-Forwarded-For": next(addresses),
        },
        excluded_checks=excluded,
    )
