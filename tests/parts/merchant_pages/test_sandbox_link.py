"""The way in to the merchant's pages that `blocktill sandbox` prints."""

import re

import requests


def test_the_printed_link_logs_in_once_and_the_workbenchs_each_time(playground):
    printed = re.search(r"shop's pages +(\S+)", playground.introduction)[1]
    again = [
        requests.get(f"{playground.chain}/sandbox/merchant", timeout=60).url
        for _ in range(2)
    ]
    assert len({printed, *again}) == 3
    for link in (printed, *again):
        with requests.Session() as session:
            page = session.post(
                link, headers={"Sec-Fetch-Site": "same-origin"}, timeout=60
            )
            assert page.status_code == 200 and page.url.endswith("/merchant")
