"""Every kind of event happens, looks as documented, and is documented as it looks."""

import json
import re
from datetime import UTC, datetime

import jsonschema_rs
import pytest

from btcpay.notify.events import KINDS, sample_event
from schemas.resources import Resources
from tests.support.builders import Clock
from tests.support.fake_esplora import open_till
from tests.support.paths import PROJECT
from tests.support.shop_events import live_through_all

PAGE = (PROJECT / "docs/developers/events.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def life(tmp_path_factory, ticker):
    """The events of a life, and the OpenAPI document of that shop."""
    with open_till(tmp_path_factory.mktemp("life"), ticker, Clock()) as till:
        yield live_through_all(till), till.shop.get("/openapi.json", "").json


def shape(value):
    """The names and types of a JSON value."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else type(value)


def test_every_kind_happens_in_a_life_and_the_document_has_no_other(life):
    assert set(life[0]) == set(KINDS)
    documented = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", PAGE, re.M)
    # Those of parts that were deleted stay documented.
    resources = {kind.resource for kind in KINDS.values()}
    assert [kind for kind in documented if kind.partition(".")[0] in resources] == [
        *KINDS
    ]


def example_of(resource):
    """The event that the document shows for all kinds of a resource."""
    section = re.search(rf"^### {resource}\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    assert section, f"docs/developers/events.md does not show a {resource}"
    (example,) = re.findall(r"```json\n(.*?)```", section[1], re.S)
    return json.loads(example)


def fields(value):
    """The names of a JSON object's fields, and of those within them."""
    if not isinstance(value, dict):
        return None
    return {name: fields(inner) for name, inner in value.items()}


def types(value, name=""):
    """The type of each field that is not null, by its path."""
    if isinstance(value, dict):
        return {
            path: kind
            for inner in value
            for path, kind in types(value[inner], f"{name}.{inner}").items()
        }
    return {} if value is None else {name: type(value)}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_is_sent_is_as_the_api_describes_it(life, kind):
    events, document = life
    body = json.loads(events[kind].body)
    _validate(document, kind, body)
    assert (body["type"], document["webhooks"][kind]["post"]["summary"]) == (
        kind,
        kind.meaning,
    )


def test_a_sample_looks_as_what_happens_does_and_names_no_address(life):
    event = sample_event(Resources("https://pay.example.com"), 1, datetime.now(UTC))
    _validate(life[1], event.kind, json.loads(event.body))
    assert "bcrt1" not in event.body.decode()
    assert list(event.data) == list(life[0][event.kind].data)


def _validate(document, kind, body):
    described = document["webhooks"][kind]["post"]["requestBody"]["content"][
        "application/json"
    ]
    schema = _closed(described["schema"] | {"components": document["components"]})
    jsonschema_rs.validator_for(schema).validate(body)


def _closed(node):
    """The schema, with no room for a field that it does not name."""
    if isinstance(node, list):
        return [_closed(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    closed = {name: _closed(inner) for name, inner in node.items()}
    return closed | ({"additionalProperties": False} if "properties" in node else {})


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_document_has_its_meaning_and_an_example_of_its_fields(life, kind):
    assert f"| `{kind}` | {kind.meaning} |" in PAGE
    example = example_of(kind.resource)
    event = json.loads(life[0][kind].body)
    if "transaction" not in event["data"]:
        example["data"].pop("transaction", None)
    assert fields(event) == fields(example)
    shown = types(example)
    sent = types(event)
    both = sent.keys() & shown
    assert {path: sent[path] for path in both} == {path: shown[path] for path in both}


@pytest.mark.parametrize("resource", sorted({kind.resource for kind in KINDS.values()}))
def test_an_example_has_the_shape_of_what_is_sent_for_its_kind(life, resource):
    example = example_of(resource)
    assert shape(example) == shape(json.loads(life[0][example["type"]].body))
