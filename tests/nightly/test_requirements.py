"""The wheel's requirements and pins: each has a reason, and each can be had."""

import re
from itertools import product

import pytest

from tests.support.paths import PROJECT
from tests.support.programs import UV, asked
from tests.support.project import METADATA, PYTHONS

DEBIANS = ["3.11.2", "3.12.3", "3.13.5"]  # Debian 12, Ubuntu 24.04, Debian 13
LIBCS = ["manylinux_2_28", "unknown-linux-musl"]
FOLDER = PROJECT / "requirements"
LOCKS = sorted(path.stem for path in FOLDER.glob("*.in"))
# The tools of the project's home have an environment of their own.
TOGETHER = [lock for lock in LOCKS if lock != "site"]
SERVED = [lock for lock in TOGETHER if lock not in ("dev", "lint")]


def pins_file(lock):
    """What every shop installs stands in the root, where one looks for it."""
    return PROJECT / "requirements.txt" if lock == "service" else FOLDER / f"{lock}.txt"


def lines(name):
    """The requirements of a file, without what is a comment alone."""
    written = (FOLDER / f"{name}.in").read_text().splitlines()
    return [line for line in written if line and not line.startswith("#")]


@pytest.mark.parametrize("lock", LOCKS)
def test_each_requirement_says_why_it_is_there(lock):
    assert [line for line in lines(lock) if "  # " not in line] == []


# Of these more is used than their documentation promises: the next major version may end it.
BOUNDED = {"gunicorn", "peewee", "requests", "urllib3"}


@pytest.mark.parametrize("lock", [lock for lock in SERVED if lock != "build"])
def test_no_later_version_is_shut_out_but_of_libraries_whose_insides_are_used(lock):
    for line in lines(lock):
        name, bound = re.match(r"([\w.\[\]-]+)>=[\d.]+(,<\d+)?( ;.*)?  # ", line).group(
            1, 2
        )
        assert bool(bound) == (name in BOUNDED), line


# The first version without a known fault: published advisories, as of November 2026.
SOUND = {
    "certifi": "2024.7.4",  # CVE-2024-39689
    "click": "8.3.3",  # CVE-2026-7246, which its project disputes
    "flask": "3.1.3",  # CVE-2026-27205
    "gunicorn": "27",  # CVE-2026-134820
    "idna": "3.15",  # CVE-2026-45409
    "jinja2": "3.1.6",  # CVE-2025-27516
    "marshmallow": "4.1.2",  # CVE-2025-68480
    "orjson": "3.11.6",  # CVE-2025-67221
    "requests": "2.33",  # CVE-2026-25645
    "setuptools": "78.1.1",  # CVE-2025-47273
    "urllib3": "2.8",  # CVE-2026-97687, CVE-2026-97689
    "werkzeug": "3.1.6",  # CVE-2026-27199
}


def test_the_least_version_of_each_requirement_is_one_without_known_faults():
    found = {}
    for lock in SERVED:
        for line in lines(lock):
            name, least = re.match(r"([\w.-]+)(?:\[.*?\])?>=([\d.]+)", line).group(1, 2)
            found[name] = numbers(least)
    assert {
        name: found[name] for name in SOUND if found[name] < numbers(SOUND[name])
    } == {}


def numbers(version):
    return [int(number) for number in version.split(".")]


def test_python_has_no_upper_bound():
    assert METADATA["requires-python"] == f">={PYTHONS[0]}"


def resolved(python, platform, locks):
    """Empty when every pin has a wheel there, with a known hash, and nothing is left out."""
    words = [
        UV,
        "pip",
        "install",
        "--dry-run",
        "--target",
        "build/none",
        "--require-hashes",
    ]
    words += [
        "--only-binary",
        ":all:",
        "--python-version",
        python,
        "--python-platform",
        platform,
    ]
    ended = asked([*words, *(f"-r{pins_file(lock)}" for lock in locks)], cwd=PROJECT)
    return ended.stderr if ended.returncode else ""


@pytest.mark.parametrize(
    ("python", "machine", "libc"), [*product(PYTHONS, ["x86_64", "aarch64"], LIBCS)]
)
def test_every_pin_is_to_be_had_as_a_wheel(python, machine, libc):
    assert resolved(python, f"{machine}-{libc}", SERVED) == ""


@pytest.mark.parametrize("python", DEBIANS)
def test_every_pin_is_to_be_had_for_the_pythons_of_debian_and_ubuntu(python):
    assert resolved(python, "x86_64-manylinux_2_28", TOGETHER) == ""


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_has_a_pin_for_each_requirement(lock):
    pins = re.findall(r"^([\w.-]+)==", pins_file(lock).read_text(), re.M)
    names = [
        re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in lines(lock)
    ]
    assert [name for name in names if name not in pins] == []
