"""Where the project lies, and the published vectors that the tests have."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TESTS = PROJECT / "tests"
VECTORS = TESTS / "vectors"
