"""A package registry, as pip and uv are told of one; without it what wants one skips."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import ALWAYS

UV = Path(sys.executable).parent / "uv"
AWAY = ("Failed to fetch", "Connection refused", "NewConnectionError")


def asked(words: list[Any], **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """How a command ended that asks the registry; where none answers, the test skips.

    Not so in .ci/run, where there is one.
    """
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300, **kwargs)
    if ended.returncode and not ALWAYS and any(word in ended.stderr for word in AWAY):
        pytest.skip(f"no registry answers: {ended.stderr.splitlines()[-1]}")
    return ended
