"""Every pin has a wheel wherever the service should run: nothing is compiled at an installation."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.markers import Marker
from paths import PROJECT

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
GLIBC = [f"manylinux_2_{minor}" for minor in (17, 28)] + ["manylinux2014"]
# The first and the last of the Pythons that README names.
PYTHONS = ("3.11", "3.14")
LIBRARIES = {"glibc": GLIBC, "musl": [f"musllinux_1_{minor}" for minor in (1, 2)]}
REGISTRY_TIMEOUT_S = 60
RESOLVE_TIMEOUT_S = 300


@pytest.fixture(scope="module", autouse=True)
def registry() -> None:
    asked = [*PIP, "index", "versions", "pip"]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=REGISTRY_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        pytest.skip("no package registry answers")
    if done.returncode:
        pytest.skip("there is no package registry")


def pins(name: str, python: str) -> list[str]:
    """What a lock pins for a Python. (pip judges markers by the Python that it runs on.)"""
    lines = re.findall(r"^([\w.-]+==[\w.]+)(?: ; ([^\\]+))?", (PROJECT / name).read_text(), re.M)
    there = {"python_version": python, "python_full_version": f"{python}.4"}
    return [pin for pin, marker in lines if not marker or Marker(marker).evaluate(there)]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("python", PYTHONS)
def test_every_pin_has_a_wheel(python: str, machine: str, library: str, tmp_path: Path):
    wanted = pins("requirements.txt", python)
    assert len(wanted) > 10
    platforms = [f"--platform={tag}_{machine}" for tag in LIBRARIES[library]]
    done = subprocess.run(
        [*PIP, "install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed"]
        + [f"--target={tmp_path / 'none'}", "--only-binary=:all:", f"--python-version={python}"]
        + [*platforms, *wanted],
        capture_output=True,
        text=True,
        timeout=RESOLVE_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
