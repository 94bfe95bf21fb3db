"""Finds the last header before a time in an explorer's chain, by binary search."""

from bisect import bisect_left
from collections.abc import Callable
from datetime import datetime
from math import ceil

from btcpay.chain.explorers.answers import ShownHeader
from btcpay.proofs.verify import check_header
from btcpay.values.times import from_unix_s

PAGE = 10  # minimum number of headers in a page


class HeaderSearch:
    """A search among an explorer's headers, from the genesis block up to `tip_height`.

    `fetch` returns a page of linked headers in ascending order, at least PAGE of them
    if there are so many. Its argument is the height of the page's last header. Each
    page is fetched only once. `max_target_bits` is the network's maximum target.
    """

    def __init__(
        self,
        fetch: Callable[[int], list[ShownHeader]],
        tip_height: int,
        max_target_bits: int,
    ) -> None:
        self._fetch = fetch
        self._tip_height = tip_height
        self._max_target_bits = max_target_bits
        self._pages: dict[int, list[ShownHeader]] = {}

    def headers_before(self, at: datetime, below: int) -> tuple[int, list[bytes]]:
        """Returns the last header whose time is not after `at`, and headers below it.

        The result is that header's height, and a list of up to `below` + 1 headers (80
        bytes each) in ascending order, which ends with that header. If the times of all
        headers are after `at`, that header is the first one of the chain.
        """
        last_page = self._last_page_before(at)
        first_page = max(0, last_page - ceil(below / PAGE))
        headers: list[ShownHeader] = []
        for number in range(first_page, last_page + 1):
            headers += self._page(number)
        while len(headers) > 1 and self._is_after(headers[-1], at):
            headers.pop()
        last_height = headers[-1].height
        return last_height, [header.raw for header in headers[-1 - below :]]

    def _last_page_before(self, at: datetime) -> int:
        """Returns the number of the last page whose first header is not after `at`.

        Returns 0 if each page begins with a header after `at`.
        """

        def begins_after(number: int) -> bool:
            first_header = self._page(number)[0]
            return self._is_after(first_header, at)

        numbers = range(self._tip_height // PAGE + 1)
        first_page_after = bisect_left(numbers, True, key=begins_after)
        return max(0, first_page_after - 1)

    def _page(self, number: int) -> list[ShownHeader]:
        """Returns up to PAGE headers, from the height `number` * PAGE on."""
        if number not in self._pages:
            first_height = number * PAGE
            last_height = min(first_height + PAGE - 1, self._tip_height)
            shown = self._fetch(last_height)
            self._pages[number] = [
                header for header in shown if header.height >= first_height
            ]
        return self._pages[number]

    def _is_after(self, header: ShownHeader, at: datetime) -> bool:
        checked = check_header(header.raw, self._max_target_bits)
        return from_unix_s(checked.time) > at
