"""The documents name what there is: settings, commands, metrics, modules, each other."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from btcpay.cli.main import cli
from btcpay.health import counters, figures
from btcpay.settings.settings import Settings, read
from btcpay.values.networks import NETWORKS
from tests.support.commands import commands
from tests.support.paths import GONE, PROJECT

OF_GONE = {
    part.removesuffix("_command") for part in GONE
}  # their commands are named after them
ROOTS = "(?:btcpay|storage|schemas|tests|docs)/"
FOLDERS = ("", "docs/**/", "examples/**/")
DOCUMENTS = sorted(path for folder in FOLDERS for path in PROJECT.glob(f"{folder}*.md"))


def named(document):
    return str(document.relative_to(PROJECT))


def text(name):
    return (PROJECT / name).read_text(encoding="utf-8")


def test_every_setting_is_in_the_table_with_its_default():
    rows = dict(
        re.findall(
            r"^\| `(BLOCKTILL_\w+)` \| (.*?) \|",
            text("docs/operators/settings.md"),
            re.M,
        )
    )
    assert set(rows) == {
        f"BLOCKTILL_{field.name.upper()}" for field in fields(Settings)
    }
    defaults = {
        name: cell.strip("`") for name, cell in rows.items() if cell.startswith("`")
    }
    defaults["BLOCKTILL_BIND"] = "127.0.0.1:8000"
    assert read(defaults) == read({})


NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def test_the_settings_page_counts_the_tickers_that_are_asked_and_must_agree():
    page = text("docs/operators/settings.md")
    mainnet = NETWORKS["mainnet"]
    sources = NUMBERS[len(mainnet.price_sources)]
    currency_sources = NUMBERS[len(mainnet.currency_sources)]
    quorum = NUMBERS[read({"BLOCKTILL_NETWORK": "mainnet"}).price_quorum]
    assert f"`BLOCKTILL_PRICE_SOURCES` | {sources} public tickers;" in page
    assert f"`BLOCKTILL_CURRENCY_SOURCES` | {currency_sources} public tickers;" in page
    assert f"\n{sources.title()} tickers are asked; {quorum} must agree" in page


def test_every_command_is_in_the_table():
    """A group's later commands stand behind its first: `blocktill key issue ...` | `list`."""
    table = "\n".join(
        line
        for line in text("docs/operators/commands.md").splitlines()
        if line[:1] == "|"
    )
    missing = [
        name
        for name, _ in commands(cli)
        for group, command in [f"blocktill {name}".rsplit(" ", 1)]
        if not re.search(rf"`{group} [^\n]*\b{command}\b", table)
    ]
    assert missing == []


def test_no_document_names_a_command_that_is_gone():
    """The changelog does: it says which have gone. A deleted part took its command with it."""
    known = {
        shorter for name, _ in commands(cli) for shorter in (name, name.split()[0])
    }
    alone = {name for name, _ in commands(cli) if " " not in name}
    gone = [
        (named(document), words)
        for document in DOCUMENTS
        if document.name != "CHANGELOG.md"
        for words in re.findall(
            r"(?:`|\$ )blocktill ([a-z][a-z-]*(?: [a-z][a-z-]*)?)\b",
            text(named(document)),
        )
        for first in [words.split()[0]]
        if words not in known
        and first not in alone
        and not {first, f"{first}s"} & OF_GONE
    ]
    assert gone == []


def test_every_metric_is_in_the_table():
    """In the code a counter has no `_total`: Prometheus's library adds it."""
    files = [Path(module.__file__) for module in (counters, figures)]
    sources = "".join(file.read_text() for file in files)
    named = re.findall(r"`blocktill_(\w+)", text("docs/operators/monitoring.md"))
    assert [name for name in named if name.removesuffix("_total") not in sources] == []
    made = set(re.findall(r'"blocktill_(\w+)"', sources)) - {
        counters.PRICE_TIME.removeprefix("blocktill_")
    }
    assert made <= {name.removesuffix("_total") for name in named}


def names_of_findings(tree):
    """The first argument of each `Finding(...)` in a module, with `*` for what varies.

    A variable stands for every value that the module gives to it.
    """
    values = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
            name = node.args[0]
            for value in values[name.id] if isinstance(name, ast.Name) else [name]:
                yield re.sub(r"\{[^}]*\}", "*", ast.unparse(value).lstrip("f")[1:-1])


def test_every_finding_of_the_doctor_is_in_the_table():
    """All but `run.py`'s, which is named after the examination that the database stopped."""
    table = re.findall(r"^\| (`[^|]+) \|", text("docs/operators/doctor.md"), re.M)
    written = {
        re.sub(r"\b(?:[A-Z]|ID)\b", "*", name)
        for cell in table
        for name in re.findall(r"`(?!--)([^`]+)`", cell)
    }
    files = {
        *PROJECT.glob("btcpay/health/doctor/*.py"),
        *PROJECT.glob("btcpay/parts/*/findings.py"),
    } - {PROJECT / "btcpay/health/doctor/run.py"}
    found = {
        name
        for path in files
        for name in names_of_findings(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found - written == set()
    if not GONE:
        assert written - found == set()


def anchors(written):
    """Where a link may lead within a document, as the forges make them from its headings."""
    headings = re.findall(r"^#+ (.+)$", prose(written), re.M)
    plain = [
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    ]
    return {*plain, *re.findall(r'<a id="([^"]+)">', written)}


def prose(written):
    return re.sub(r"```.*?```", "", written, flags=re.S)


def torn(document, written):
    """Addresses that do not stand right behind their `[text]`, or go over a line's end."""
    apart = r"(?<!\])\((?:[\w./-]+\.md[^)\s]*|#[\w-]+)\)"
    return re.findall(rf"{apart}|\]\([^)\n]*\n", prose(written))


def leading_nowhere(document, written):
    found = []
    for link in map("".join, re.findall(r'\]\(([^)\s]+)\)|src="([^"]+)"', written)):
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if re.match(r"https?:", link) or (target.exists() and not anchor):
            continue
        if not target.exists() or anchor not in anchors(
            target.read_text(encoding="utf-8")
        ):
            found.append(link)
    return found


def paths_of_nothing(document, written):
    """From the root, or within btcpay/: `storage/queries/`, `check/`, `tests/support/forge.py`.

    What is in the folders of a deleted part may still be named.
    """
    paths = re.findall(rf"`({ROOTS}[\w./*-]*|[a-z_]+/)`", written)
    paths = [
        path for path in paths if not any(f"/{part}/" in f"/{path}/" for part in GONE)
    ]
    roots = (PROJECT, PROJECT / "btcpay")
    return [path for path in paths if not any(any(root.glob(path)) for root in roots)]


def tables_without_a_heading(document, written):
    """A blank line within a table ends it, and what follows is shown as text."""
    return [t for t in re.findall(r"\n\n(\|.*\n.*)", written) if "\n| ---" not in t]


@pytest.mark.parametrize(
    "wrong", [torn, leading_nowhere, paths_of_nothing, tables_without_a_heading]
)
@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_a_document_names_nothing_that_is_missing(wrong, document):
    assert wrong(document, document.read_text(encoding="utf-8")) == []


def test_nobody_is_told_to_install_a_name_of_an_index_that_is_not_ours():
    """Nor to look for a tag, which a clone need not have: the wheel is built from a clone."""
    told = (
        r"\b(?:pip|pipx|uvx|uv tool)\b(?![^\n`]*--(?:from|spec))"
        r"[^\n`]*[ '\"]blocktill(?!-\*|-VER)"
    )
    sources = [
        *DOCUMENTS,
        *PROJECT.glob("btcpay/**/*.py"),
        *PROJECT.glob("storage/**/*.py"),
    ]
    sources += [path for path in PROJECT.glob("deploy/*") if path.is_file()]
    written = {named(path): path.read_text(encoding="utf-8") for path in sources}
    assert [name for name in written if re.search(told, written[name])] == []
    assert [name for name in written if "git describe" in written[name]] == []


def test_readme_and_the_front_page_of_the_documents_lead_to_every_one():
    linked = {
        (PROJECT / folder / name).resolve()
        for folder in ("", "docs", "docs/developers/decisions")
        for name in re.findall(
            r"\]\(([\w./-]+\.md)\)", text(f"{folder}/README.md".lstrip("/"))
        )
    }
    assert linked == set(DOCUMENTS)
