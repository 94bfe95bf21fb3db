"""The collection for Postman is what its importer makes of the OpenAPI document."""

import pytest

from tests.support.bitcoin_node import why_not_installed
from tests.support.postman import FILE, GENERATORS, as_text, make_collection


def test_the_documents_have_the_collection_that_the_importer_makes_today(tmp_path):
    if reason := why_not_installed(GENERATORS):
        pytest.skip(reason)
    made = as_text(make_collection(tmp_path))
    assert FILE.read_text(encoding="utf-8") == made, "make postman"
