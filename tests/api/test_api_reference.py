"""The `curl` lines of the site's API reference do what the OpenAPI document says."""

import json
import shlex
from urllib.parse import urlsplit

import api_reference
import pytest

from tests.support.builders import Clock, open_shop

DOCUMENT = api_reference.with_curl_lines()
OPERATIONS = {
    operation["operationId"]: (method.upper(), operation)
    for methods in DOCUMENT["paths"].values()
    for method, operation in methods.items()
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory, ticker):
    ticker.reset()
    with open_shop(tmp_path_factory.mktemp("shop"), ticker.url, Clock()) as opened:
        yield opened


@pytest.fixture(scope="module")
def ids(shop):
    """The shop's own ids by the ones in the examples."""
    examples = {
        parameter["example"][:3]: parameter["example"]
        for _, operation in OPERATIONS.values()
        for parameter in operation["parameters"]
        if parameter["in"] == "path"
    }
    own = {"inv": shop.invoice()["id"], "lnk": shop.link()["id"]}
    return {example: own[prefix] for prefix, example in examples.items()}


def send(shop, line):
    """The answer to a curl line with the write key, sent within this process."""
    words = shlex.split(line.replace("\\\n", " ").replace("$KEY", shop.write_key))
    assert words[:2] == ["curl", "-s"]
    url = urlsplit(words[2])
    options = list(zip(words[3::2], words[4::2], strict=True))
    headers = dict(value.split(": ", 1) for name, value in options if name == "-H")
    bodies = [value for name, value in options if name == "-d"]
    assert {name for name, _ in options} <= {"-H", "-d"}
    return shop.client.open(
        url.path,
        method="POST" if bodies else "GET",
        query_string=url.query,
        headers=headers,
        data=bodies[0] if bodies else None,
    )


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_copied_line_gets_the_documented_status(shop, ids, name):
    method, operation = OPERATIONS[name]
    line = operation["x-codeSamples"][0]["source"]
    for example, own in ids.items():
        line = line.replace(example, own)
    answer = send(shop, line)
    assert str(answer.status_code) == next(iter(operation["responses"])), answer.text
    assert answer.request.method == method


def test_a_line_quotes_what_a_shell_would_read():
    body = {"description": "It's $5 `now`"}
    content = {"application/json": {"example": body}}
    operation = {"parameters": [], "requestBody": {"content": content}}
    line = api_reference.curl_line("http://127.0.0.1:8000/api/v1/invoices", operation)
    assert json.loads(shlex.split(line.replace("\\\n", " "))[-1]) == body
