"""What a stranger meets first: README, its badges, and the forms for faults and wishes."""

import re
import xml.etree.ElementTree as ET

import pytest
import yaml

from tests.support.paths import PROJECT
from tests.support.project import METADATA, PYTHONS

README = (PROJECT / "README.md").read_text(encoding="utf-8")
BADGES = PROJECT / "docs/pictures/badges"
FORMS = [
    path
    for path in sorted((PROJECT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    if path.name != "config.yml"
]
SVG = "{http://www.w3.org/2000/svg}"
TRUE = {
    "licence": f"Licence: {METADATA['license']}",
    "python": f"Python: {PYTHONS[0]} to {PYTHONS[-1]}",
    "tests": "Tests: SQLite and PostgreSQL",
    "keys": "Private keys: none",
}


def test_no_picture_of_readme_comes_from_elsewhere():
    pictures = re.findall(r'!\[[^]]*\]\(([^)]+)\)|src="([^"]+)"', README)
    assert len(pictures) > len(TRUE)
    for name in map("".join, pictures):
        assert (PROJECT / name).is_file(), name


@pytest.mark.parametrize("name", TRUE)
def test_a_badge_says_what_is_so_in_its_title_its_letters_and_its_text(name):
    badge = ET.parse(BADGES / f"{name}.svg").getroot()
    letters = [text.text for text in badge.iter(f"{SVG}text")]
    assert badge.find(f"{SVG}title").text == TRUE[name] == ": ".join(letters)
    assert f"[![{TRUE[name]}](docs/pictures/badges/{name}.svg)]" in README
    assert {path.stem for path in BADGES.iterdir()} == TRUE.keys()


def test_each_column_about_another_program_has_a_source_and_its_year():
    table = re.search(r"^\| \| Blocktill \|.*\n\| --- .*\n((?:\|.*\n)+)", README, re.M)
    rows = table[1].splitlines()
    assert len(rows) == 6
    columns = rows[-1].strip("|").split("|")[2:]
    assert len(columns) == 4
    for cell in columns:
        assert "](https://" in cell and re.search(r"\b20\d\d\b", cell), cell


@pytest.mark.parametrize("file", FORMS, ids=lambda path: path.stem)
def test_a_form_has_what_github_asks_of_one(file):
    form = yaml.safe_load(file.read_text())
    assert form["name"] and form["description"]
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert ids and len(ids) == len(set(ids))
    for part in form["body"]:
        needed = {"markdown": "value", "dropdown": "options"}
        assert part["attributes"][needed.get(part["type"], "label")]


def test_the_form_for_faults_asks_for_the_doctors_json():
    body = yaml.safe_load((FORMS[0].parent / "fault.yml").read_text())["body"]
    (part,) = [part for part in body if part.get("id") == "doctor"]
    assert "`blocktill doctor --json`" in part["attributes"]["label"]
    assert part["attributes"]["render"] == "json"


def test_a_code_of_conduct_stands_where_github_finds_it():
    text = (PROJECT / ".github/CODE_OF_CONDUCT.md").read_text()
    links = re.findall(r"\]\(\.\./([\w.]+)(#[\w-]+)?\)", text)
    assert links
    assert all((PROJECT / name).is_file() for name, _ in links)
