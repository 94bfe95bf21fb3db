"""Makes the collection for Postman and its kind of the OpenAPI document: `make postman`.

It is made by openapi-to-postmanv2, the importer of Postman itself. By its default options that one
takes no example, and writes "<number>" for an amount; so the collection is a file of the documents.
"""

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import app
from btcpay.api import openapi
from btcpay.settings.settings import read
from tests.support.bitcoin_node import why_not_installed
from tests.support.paths import PROJECT, TESTS
from tests.support.programs import done

FILE = PROJECT / "docs/developers/blocktill.postman_collection.json"
GENERATORS = TESTS / "nightly/api/generators"
# What is optional is there, but not ticked: so a list has all, and each press makes an invoice.
OPTIONS = {
    "parametersResolution": "Example",
    "folderStrategy": "Tags",
    "enableOptionalParameters": "false",
    "includeAuthInfoInExample": "false",
}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KEY = {"key": "bearerToken", "value": "", "type": "string"}


def make_collection(folder: Path) -> dict[str, Any]:
    """Returns the collection; npm's packages must be installed. `folder` is for its files."""
    source = folder / "openapi.json"
    made = folder / "made.json"
    source.write_text(json.dumps(named_document()), encoding="utf-8")
    options = ",".join(f"{name}={value}" for name, value in OPTIONS.items())
    program = GENERATORS / "node_modules/.bin/openapi2postmanv2"
    done([program, "-s", source, "-o", made, "-O", options])
    collection = without_ids(json.loads(made.read_text(encoding="utf-8")))
    collection["variable"].append(_KEY)
    # The tag of webhooks has no operation.
    collection["item"] = [tag for tag in collection["item"] if tag["item"]]
    for tag in collection["item"]:
        for request in tag["item"]:
            del request["response"][1:]  # the errors
    return collection


def named_document() -> dict[str, Any]:
    """The OpenAPI document whose summaries, which name requests, are the operations' ids."""
    document = openapi.document(read({}).base_url, app.OPERATIONS)
    for methods in document["paths"].values():
        for operation in methods.values():
            summary = operation["summary"]
            operation["description"] = f"{summary} {operation['description']}"
            operation["summary"] = operation["operationId"]
    return document


def without_ids(node: Any) -> Any:
    """The same without the random ids, which would differ each time; none is required."""
    if isinstance(node, list):
        return [without_ids(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        name: without_ids(value)
        for name, value in node.items()
        if not (isinstance(value, str) and _UUID.fullmatch(value))
    }


def as_text(collection: dict[str, Any]) -> str:
    return json.dumps(collection, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if reason := why_not_installed(GENERATORS):
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as folder:
        FILE.write_text(as_text(make_collection(Path(folder))), encoding="utf-8")
