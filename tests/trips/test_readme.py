"""The README's lines run as they are written, and their answers look as it says."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from paths import PROJECT
from playground import Playground, start_playground

from btcpay.settings import read

README = (PROJECT / "README.md").read_text(encoding="utf-8")
EXAMPLES = [
    (shlex.split(line.replace("\\\n", " ")), json.loads(answer))
    for line, answer in re.findall(
        r"```console\n\$ (curl (?:[^\n]*\\\n)*[^\n]*)\n(\{.*?^\})\n```", README, re.M | re.S
    )
]


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    started = start_playground(tmp_path_factory.mktemp("readme"))
    yield started
    started.stop()


def run(words: list[str], playground: Playground, ids: dict[str, str]) -> Any:
    """The answer to a curl line of the README, its ids and root replaced by living ones."""
    url = next(word for word in words if word.startswith("http"))
    url = url.replace("http://127.0.0.1:8000", playground.service)
    for written, living in ids.items():
        url = url.replace(written, living)
    options = dict(zip(words, words[1:], strict=False))
    headers = [words[place + 1] for place, word in enumerate(words) if word == "-H"]
    named = dict(header.replace("$KEY", playground.key).split(": ", 1) for header in headers)
    method = "POST" if "-d" in options else "GET"
    return requests.request(method, url, data=options.get("-d"), headers=named, timeout=10).json()


def shape(value: Any) -> Any:
    """Names and types, without the values: what stays the same from run to run."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def test_every_operation_has_an_example() -> None:
    assert len(EXAMPLES) == 9  # the eight operations and an error


def test_the_examples_answer_as_written(playground: Playground) -> None:
    ids: dict[str, str] = {}
    for words, written in EXAMPLES:
        answer = run(words, playground, ids)
        assert shape(answer) == shape(written), words
        if "id" in written and written["id"] not in ids:
            ids[written["id"]] = answer["id"]
        if written.get("status") == "open":
            playground.pay(answer)
            playground.press("mine")
            playground.wait_for_status(answer, "paid")


def test_every_setting_is_in_the_table_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(BTCPAY_\w+)` \| (.*?) \|", README, re.M))
    source = (PROJECT / "btcpay" / "settings.py").read_text(encoding="utf-8")
    assert set(rows) == set(re.findall(r'"(BTCPAY_\w+)"', source))
    defaults = {name: cell.strip("`") for name, cell in rows.items() if cell.startswith("`")}
    defaults["BTCPAY_BIND"] = "127.0.0.1:8000"
    assert read(defaults) == read({})
