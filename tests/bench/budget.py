"""A month of open invoices, one explorer, cron every minute: what the budget of calls comes to.

Real checks on a real database against a real HTTP server; only the time is simulated.
"""

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

from builders import Clock, Shop, TickerServer, open_shop
from fake_esplora import FakeEsplora, Till

from btcpay.wallet.account import script_of
from storage.queries import invoices

DAYS, MINUTES_OF_ONE_PAYER, MINUTES_OF_A_BLOCK = 30, 20, 10


@dataclass(frozen=True)
class Figures:
    """What came of so many minutes; gaps in minutes, calls counted at the explorer.

    `slowest_payment`: minutes from the block that made it deep enough until it was counted.
    """

    calls_in_the_worst_hour: int
    longest_gap_of_a_payer: int
    longest_gap_of_the_others: int
    looked_at_in_the_last_run: int
    incomplete_runs: int
    payments: int
    slowest_payment: int


def simulate(folder: Path, ticker: TickerServer, minutes: int, budget: int, **size: int) -> Figures:
    """Runs a check in every minute; `size` may name invoices, payers and confirmations.

    Where confirmations are named, one payer pays in every block, and looks on for twenty minutes.
    """
    count, payers = size.get("invoices", 500), size.get("payers", 5)
    clock = Clock()
    clock.move(days=-DAYS)
    with FakeEsplora() as esplora:
        environ = {
            "BTCPAY_EXPLORERS": esplora.root,
            "BTCPAY_EXPLORER_CALLS_PER_HOUR": str(budget),
            "BTCPAY_CONFIRMATIONS": str(size.get("confirmations", 1)),
        }
        with open_shop(folder, ticker.url, clock, **environ) as shop:
            month = _open_invoices(shop, clock, count, esplora)
            till = Till(shop, None, clock)
            return _run(till, esplora, month, minutes, payers, size.get("confirmations", 0))


def _open_invoices(shop: Shop, clock: Clock, count: int, esplora: FakeEsplora) -> list[Any]:
    """One after the other, evenly over thirty days."""
    made = []
    for _ in range(count):
        clock.move(seconds=timedelta(days=DAYS).total_seconds() / count)
        made.append(shop.invoice())
        esplora.histories[made[-1]["deposit_address"]] = []
    return made


def _run(
    till: Till, esplora: FakeEsplora, month: list[Any], minutes: int, payers: int, depth: int
) -> Figures:
    calls, incomplete, looked_at = [], 0, 0
    gaps = dict.fromkeys((invoice["id"] for invoice in month), 0)
    worst_payer = worst_other = 0
    ids = {invoice["deposit_address"]: invoice["id"] for invoice in month}
    paid: dict[str, int] = {}
    delays: list[int] = []
    for minute in range(minutes):
        till.clock.move(minutes=1)
        if minute % MINUTES_OF_A_BLOCK == 0:
            esplora.tip += 1
            invoice = month[minute // MINUTES_OF_A_BLOCK * 7 % len(month)]
            if depth and invoice["id"] not in paid:
                paid[invoice["id"]] = minute
                _pay(esplora, invoice)
            else:
                esplora.block_at(esplora.tip)
        looking_on = [one for one, at in paid.items() if minute - at < MINUTES_OF_ONE_PAYER]
        watching = (_payers(month, minute, payers) + looking_on)[-payers:]
        for invoice_id in watching:
            till.shop.service.db.run(invoices.ASKED, id=invoice_id, at=_ms(till))
        esplora.asked.clear()
        run = till.check()
        seen = {ids[path.split("/")[2]] for path in esplora.asked if "/address/" in path}
        gaps = {one: 0 if one in seen else gap + 1 for one, gap in gaps.items()}
        worst_payer = max([worst_payer, *(gaps[one] for one in watching if one not in paid)])
        worst_other = max([worst_other, *(gap for one, gap in gaps.items() if one not in paid)])
        delays += [minute - paid[one] - (depth - 1) * MINUTES_OF_A_BLOCK for one in run.changed]
        calls.append(len(esplora.asked))
        incomplete += not run.complete
        looked_at = run.scanned
    due = minutes - (depth - 1) * MINUTES_OF_A_BLOCK
    delays += [due - at for one, at in paid.items() if at < due and not _is_paid(till, one)]
    worst = _worst_hour(calls), worst_payer, worst_other
    return Figures(*worst, looked_at, incomplete, len(paid), max(delays, default=0))


def _pay(esplora: FakeEsplora, invoice: Any) -> None:
    """In full, in the block that is the tip now."""
    address = invoice["deposit_address"]
    script = script_of(address, "p2wpkh")
    esplora.histories[address] = [esplora.mine(script, invoice["amount_sats"], esplora.tip)]


def _is_paid(till: Till, invoice_id: str) -> bool:
    return till.shop.service.db.only(invoices.WHOLE, id=invoice_id)["status"] == "paid"


def _payers(month: list[Any], minute: int, payers: int) -> list[str]:
    """Each looks for a while, then somebody else at another invoice; at moments of their own."""
    chosen = []
    for number in range(payers):
        turn = (minute + number * MINUTES_OF_ONE_PAYER // payers) // MINUTES_OF_ONE_PAYER
        chosen.append(month[(turn * 37 + number * 101) % len(month)]["id"])
    return chosen


def _worst_hour(calls: list[int]) -> int:
    sums = [0, *accumulate(calls)]
    return max(sums[min(end, len(calls))] - sums[max(0, end - 60)] for end in range(1, len(sums)))


def _ms(till: Till) -> int:
    return int(till.clock().timestamp() * 1000)


def main() -> None:
    """Prints the figures of docs/budget.md."""
    for minutes, budget, size in (
        (24 * 60, 600, {}),
        (12 * 60, 600, {"confirmations": 1}),
        (12 * 60, 600, {"confirmations": 6, "payers": 3}),
        (10, 100_000, {}),
    ):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btcpay-bench-")))
            ticker = stack.enter_context(TickerServer())
            print(f"budget {budget} an hour, {minutes} minutes, {size or 'nobody pays'}")
            for name, value in vars(simulate(folder, ticker, minutes, budget, **size)).items():
                print(f"  {name.replace('_', ' '):<32}{value:6}")


if __name__ == "__main__":
    main()
