"""The curl lines of README and docs/developers/api.md run as written and answer as shown."""

import json
import re
import shlex

import pytest
import requests

from app import OPERATIONS
from tests.support.builders import until
from tests.support.paths import PROJECT

LEFT_OUT = "..."
CURL = re.compile(
    r"^\$ (?P<line>curl (?:[^\n]*\\\n)*[^\n]*127\.0\.0\.1:8000[^\n]*\n(?:    [^\n]*\n)*)"
    r"(?P<answer>\{.*?^\})\n",
    re.M | re.S,
)


def examples(name):
    """The words of each curl line of a document, and the answer that stands below it."""
    text = (PROJECT / name).read_text(encoding="utf-8")
    return [
        (shlex.split(found["line"].replace("\\\n", " ")), written(found["answer"]))
        for found in CURL.finditer(text)
    ]


def written(answer):
    """An answer as JSON; `...` becomes a name that says that others are left out."""
    return json.loads(re.sub(r",\n *\.\.\.\n", f', "{LEFT_OUT}": null\n', answer))


def run(words, playground, ids):
    """The answer to a curl line, its ids and root replaced by living ones."""
    url = next(word for word in words if word.startswith("http"))
    url = url.replace("http://127.0.0.1:8000", playground.service)
    for old, living in ids.items():
        url = url.replace(old, living)
    options = dict(zip(words, words[1:], strict=False))
    headers = [words[place + 1] for place, word in enumerate(words) if word == "-H"]
    named = dict(
        header.replace("$KEY", playground.key).split(": ", 1) for header in headers
    )
    method = "POST" if "-d" in options else "GET"
    return requests.request(
        method, url, data=options.get("-d"), headers=named, timeout=60
    ).json()


def shape(value):
    """Names and types, without the values: what stays the same from run to run."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def without_left_out(answer, example):
    """The answer without the fields that the example leaves out, at any depth."""
    if isinstance(example, list):
        return [without_left_out(item, example[0]) for item in answer]
    if not isinstance(example, dict):
        return answer
    return {
        name: without_left_out(value, example.get(name))
        for name, value in answer.items()
        if name in example or LEFT_OUT not in example
    }


def without_dots(example):
    """The example without the places where fields are left out."""
    if isinstance(example, list):
        return [without_dots(item) for item in example]
    if not isinstance(example, dict):
        return example
    return {
        name: without_dots(value) for name, value in example.items() if name != LEFT_OUT
    }


def looks_as(answer, example):
    return shape(without_left_out(answer, example)) == shape(without_dots(example))


def test_every_operation_has_an_example():
    others = 2  # an error, and the public status
    assert len(examples("docs/developers/api.md")) == len(OPERATIONS) + others
    headings = re.findall(
        r"^### (\S+)$", (PROJECT / "docs/developers/api.md").read_text(), re.M
    )
    assert set(headings) == set(OPERATIONS)


@pytest.mark.parametrize("name", ["README.md", "docs/developers/api.md"])
def test_the_examples_answer_as_written(name, playground):
    found = examples(name)
    ids: dict[str, str] = {}
    for words, example in found:
        answer = run(words, playground, ids)
        assert looks_as(answer, example), (words, answer)
        listed = zip(
            example.get("data", [example]), answer.get("data", [answer]), strict=False
        )
        for shown, living in listed:
            if "id" in shown:
                ids.setdefault(shown["id"], living["id"])
        if example.get("status") == "open":
            playground.pay(answer)
            playground.press("mine")
            playground.wait_for_status(answer, "paid")
            # A moment later: the run that has settled it is at its end.
            until(
                lambda one=answer: playground.page_status(one)["checked_at"],
                "the run's end",
            )
    assert found
