"""The goals of docs/budget.md, with simulated time: half a day of a busy shop on one explorer."""

from pathlib import Path

from bench.bots import Siege, besiege
from bench.budget import simulate
from bench.sweep import IN_FLIGHT, sweep
from builders import TickerServer


def test_six_hundred_calls_an_hour_serve_five_payers_and_five_hundred_invoices(
    tmp_path: Path, ticker: TickerServer
) -> None:
    ticker.reset()
    figures = simulate(tmp_path, ticker, minutes=6 * 60 + 30, budget=600)
    assert figures.calls_in_the_worst_hour < 600
    assert figures.longest_gap_of_a_payer < 5
    assert figures.longest_gap_of_the_others < 6 * 60
    assert figures.incomplete_runs == 0


def test_within_that_budget_a_payment_in_every_block_is_counted_at_once(
    tmp_path: Path, ticker: TickerServer
) -> None:
    ticker.reset()
    figures = simulate(tmp_path, ticker, minutes=2 * 60, budget=600, confirmations=1)
    assert (figures.payments, figures.slowest_payment, figures.incomplete_runs) == (12, 0, 0)
    assert figures.longest_gap_of_a_payer < 5


def test_beside_two_hundred_pages_that_bots_hold_open_every_payer_is_seen_within_five_minutes(
    tmp_path: Path, ticker: TickerServer
) -> None:
    ticker.reset()
    figures = besiege(tmp_path, ticker, 3 * 60, Siege())
    assert figures.payers == 15
    assert figures.longest_until_first_look <= 1 and figures.longest_until_seen <= 5
    assert (figures.unseen, figures.unsettled) == (0, 0)
    assert figures.calls_in_the_worst_hour < 600


def test_a_large_budget_looks_at_all_in_every_run(tmp_path: Path, ticker: TickerServer) -> None:
    ticker.reset()
    figures = simulate(tmp_path, ticker, minutes=3, budget=100_000)
    assert figures.longest_gap_of_the_others == 0
    assert figures.looked_at_in_the_last_run == 500


def test_a_sweep_has_sixteen_calls_in_flight_on_as_many_connections(
    tmp_path: Path, ticker: TickerServer
) -> None:
    ticker.reset()
    figures = sweep(tmp_path, ticker, 200)
    assert (figures.connections, figures.in_flight) == (IN_FLIGHT, IN_FLIGHT)
