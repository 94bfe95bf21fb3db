"""Every kind of event happens, looks as documented, and is documented as it looks."""

import json
import re
from datetime import UTC, datetime

import pytest
from builders import Clock
from fake_esplora import open_till
from paths import PROJECT
from shop_events import live_through_all

from btcpay.notify.kinds import EventKind
from btcpay.notify.samples import sample
from schemas.resources import Resources

PAGE = (PROJECT / "docs/developers/events.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def life(tmp_path_factory, ticker):
    """The events of a life, by their kinds."""
    with open_till(tmp_path_factory.mktemp("life"), ticker, Clock()) as till:
        yield live_through_all(till)


def shape(value):
    """The names and types of a JSON value."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else type(value)


def names(value):
    return {name: names(inner) for name, inner in value.items()} if isinstance(value, dict) else ""


def test_every_kind_happens_in_a_life_and_the_document_has_no_other(life):
    assert set(life) == set(EventKind)
    assert re.findall(r"^### (.+)$", PAGE, re.M) == [kind.value for kind in EventKind]


def section(kind):
    found = re.search(rf"^### {re.escape(kind)}\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    assert found, f"docs/developers/events.md does not tell of {kind}"
    return found[1]


@pytest.mark.parametrize("kind", EventKind)
def test_a_sample_looks_as_what_happens_does_and_names_no_address(life, kind):
    event = sample(Resources("https://pay.example.com"), 1, kind, datetime.now(UTC))
    body = json.loads(event.body)
    assert body["type"] == kind and "bcrt1" not in event.body.decode()
    assert names(body) == names(json.loads(life[kind].body))


@pytest.mark.parametrize("kind", EventKind)
def test_the_document_has_its_meaning_and_an_example_of_its_shape(life, kind):
    text = section(kind)
    assert kind.meaning in " ".join(text.split())
    (example,) = re.findall(r"```json\n(.*?)```", text, re.S)
    assert shape(json.loads(example)) == shape(json.loads(life[kind].body))
