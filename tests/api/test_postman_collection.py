"""The collection for Postman among the documents asks what the OpenAPI document describes."""

import json
import re

import pytest

import app
from btcpay.api import openapi
from btcpay.settings.settings import read
from tests.support.postman import FILE

COLLECTION = json.loads(FILE.read_text(encoding="utf-8"))
ITEMS = {item["name"]: item for tag in COLLECTION["item"] for item in tag["item"]}
DOCUMENT = openapi.document(read({}).base_url, app.OPERATIONS)
OPERATIONS = {
    described["operationId"]: (method.upper(), path, described)
    for path, methods in DOCUMENT["paths"].items()
    for method, described in methods.items()
}
AGAIN = "the OpenAPI document has changed: `make postman`"


def example(node):
    return node["content"]["application/json"]["example"]


def test_it_has_every_operation_by_its_name():
    assert set(ITEMS) == set(OPERATIONS), AGAIN


def test_address_and_key_are_variables_and_nothing_is_left_to_fill_in_by_hand():
    variables = {each["key"]: each["value"] for each in COLLECTION["variable"]}
    assert variables == {"baseUrl": "http://127.0.0.1:8000", "bearerToken": ""}
    (token,) = COLLECTION["auth"]["bearer"]
    assert (COLLECTION["auth"]["type"], token["value"]) == ("bearer", "{{bearerToken}}")
    text = FILE.read_text(encoding="utf-8")
    assert re.findall(r"<[\w, -]+>", text) == []
    assert set(re.findall(r"\{\{\w+\}\}", text)) == {"{{baseUrl}}", "{{bearerToken}}"}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_request_and_its_answer_are_the_examples_of_the_document(name):
    method, path, described = OPERATIONS[name]
    request = ITEMS[name]["request"]
    url = "/".join([*request["url"]["host"], *request["url"]["path"]])
    expected_url = "{{baseUrl}}" + re.sub(r"\{(\w+)\}", r":\1", path)
    assert (request["method"], url) == (method, expected_url), AGAIN
    given = request["url"]["query"] + request["url"]["variable"] + request["header"]
    sent = {
        each["key"]: (each["value"], not each.get("disabled"))
        for each in given
        if each["key"] not in ("Accept", "Content-Type")
    }
    expected = {
        parameter["name"]: (str(parameter["example"]), parameter.get("required", False))
        for parameter in described["parameters"]
    }
    assert sent == expected, AGAIN
    if "requestBody" in described:
        body = json.loads(request["body"]["raw"])
        assert body == example(described["requestBody"]), AGAIN
    (answer,) = ITEMS[name]["response"]
    success = described["responses"][str(answer["code"])]
    assert json.loads(answer["body"]) == example(success), AGAIN
