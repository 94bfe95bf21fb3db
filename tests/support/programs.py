"""Programs that tests need and `.ci/run` installs; elsewhere what wants one of them skips."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ALWAYS = os.environ.get("CI_RUN") == "1"  # .ci/run has installed what a test may want
UV = Path(sys.executable).parent / "uv"
AWAY = (
    "Failed to fetch",
    "Connection refused",
    "NewConnectionError",
)  # no registry answers


def tool(name: str) -> str:
    """The path of a program; without it the test skips, but not in .ci/run."""
    path = f"{os.environ['PATH']}:/usr/sbin:{Path(sys.executable).parent}"
    found = shutil.which(name, path=path)
    if found is None and not ALWAYS:
        pytest.skip(f"{name} is not installed")
    assert found, f"{name} is not installed, though .ci/run was to install it"
    return found


def done(words: list[Any], timeout: int = 60, **kwargs: Any) -> str:
    """The output of a command that must succeed without a warning."""
    ended = subprocess.run(
        words, capture_output=True, text=True, timeout=timeout, **kwargs
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def certificate(folder: Path, name: str = "pay.example.com") -> None:
    """privkey.pem and fullchain.pem: one that signs itself, for the name and 127.0.0.1."""
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += [
        "-subj",
        f"/CN={name}",
        "-addext",
        f"subjectAltName=IP:127.0.0.1,DNS:{name}",
    ]
    keys = ["-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem"]
    done([tool("openssl"), *words, *keys])


def asked(words: list[Any], **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """How a command ended that asks the registry; where none answers, the test skips.

    Not so in .ci/run, where there is one.
    """
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300, **kwargs)
    if ended.returncode and not ALWAYS and any(word in ended.stderr for word in AWAY):
        pytest.skip(f"no registry answers: {ended.stderr.splitlines()[-1]}")
    return ended
