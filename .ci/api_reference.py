"""Prints the OpenAPI document with a curl line for each operation, for the site's reference."""

import json
import shlex
import sys
from typing import Any
from urllib.parse import urlencode

import app
from btcpay.api import openapi
from btcpay.settings.settings import read

INDENT = " \\\n    "


def with_curl_lines() -> dict[str, Any]:
    """Returns the document of a service with default settings, as `make run` starts it.

    `x-codeSamples` is the name that generators of references know.
    """
    document = openapi.document(read({}).base_url, app.OPERATIONS)
    (server,) = document["servers"]
    for path, methods in document["paths"].items():
        for operation in methods.values():
            line = curl_line(server["url"] + path, operation)
            sample = {"lang": "Shell", "label": "curl", "source": line}
            operation["x-codeSamples"] = [sample]
    return document


def curl_line(url: str, operation: dict[str, Any]) -> str:
    """Returns a command that sends the example of an operation, with the key from `$KEY`."""
    words = [f"curl -s {shlex.quote(_fill_in(url, operation['parameters']))}"]
    if operation.get("security") != []:
        words.append('-H "Authorization: Bearer $KEY"')
    if "requestBody" in operation:
        words[-1] += ' -H "Content-Type: application/json"'
        body = operation["requestBody"]["content"]["application/json"]["example"]
        words.append(f"-d {shlex.quote(json.dumps(body, indent=2))}")
    return INDENT.join(words)


def _fill_in(url: str, parameters: list[dict[str, Any]]) -> str:
    """Returns the URL with the examples of its parameters; headers are optional."""

    def examples(place: str) -> dict[str, Any]:
        return {
            each["name"]: each["example"] for each in parameters if each["in"] == place
        }

    query = urlencode(examples("query"))
    return url.format(**examples("path")) + (f"?{query}" if query else "")


if __name__ == "__main__":
    json.dump(with_curl_lines(), sys.stdout, indent=1)
