"""The first header that a shop keeps: whose it is, who must agree, and what it costs to find."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.first_header import BELOW, MOST_COMPARED, keep_first_header
from btcpay.chain.progress import progress_of
from btcpay.http import http_client
from btcpay.values.errors import ExplorerError
from btcpay.values.networks import BlockId
from btcpay.values.times import from_unix_s, to_ms
from storage.queries import blocks, meta
from storage.queries.meta import Key
from tests.support.builders import finish
from tests.support.fake_esplora import LiedTo, of_blocks, say
from tests.support.rival import Rival
from tests.support.serving import Reply


@pytest.fixture
def till(lied_to):
    return lied_to(has_begun=False)


def first_of(till):
    """Height of the block after which the shop reads."""
    (height,) = till.shop.sql(
        f"SELECT MAX(height) FROM block WHERE read_ms = {blocks.NEVER}"  # noqa: S608
    ).fetchone()
    return height


def long_chain(till, count, apart_s=600):
    """So many blocks up to the present."""
    rival = Rival(till, 0)
    for left in range(count, 0, -1):
        rival.add(at=till.now - (left - 1) * apart_s)
    return rival


def last_before(rival, at):
    return max(height for height, block in enumerate(rival.blocks) if block.time <= at)


def since(till, at):
    """The shop's first invoice is from then."""
    till.shop.invoice()
    till.shop.sql(f"UPDATE invoice SET created_ms = {to_ms(at)}")  # noqa: S608


def test_nothing_is_asked_and_nothing_kept_without_a_merchant(till):
    till.shop.sql("DELETE FROM balance")
    till.shop.sql("DELETE FROM api_key")
    till.shop.sql("DELETE FROM merchant")
    assert till.check().complete and till.liar.asked == []
    assert first_of(till) is None


def test_without_an_invoice_it_is_the_last_block_two_hours_before_now(till):
    till.clock.move(hours=5)
    till.mine()
    report = till.check()
    assert report.complete and report.has_tip and report.blocks_read == 0
    assert first_of(till) == true_first(till)


def test_the_first_header_is_the_last_one_two_hours_before_the_first_invoice(till):
    till.shop.invoice()
    till.clock.move(hours=3)
    till.shop.invoice()
    assert till.mine_and_check().complete
    ledger = till.sandbox.chain.ledger
    first, after = (ledger.blocks[ledger.hashes[first_of(till) + n]] for n in (0, 1))
    since = till.now - 5 * 3600
    assert first.time <= since < after.time and since - first.time < 600


def test_a_chain_that_is_younger_begins_at_its_first_block(till):
    genesis_at = from_unix_s(
        till.sandbox.chain.ledger.blocks[till.settings.network.genesis_hash].time
    )
    since(till, genesis_at)
    assert keep_first_header(
        till.shop.service.db, till.settings.network, till.explorers(), till.clock
    )
    assert first_of(till) == 0


@pytest.mark.parametrize("count", [1, 9, 10, 100, 1700])
@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_the_first_header_is_found_among_thousands_by_few_calls(till, count, part):
    rival = long_chain(till, count)
    at = till.now - int(part * count * 600)
    since(till, from_unix_s(at + 7200))
    till.clock.move(hours=2)
    till.liar.instead = rival
    assert keep_first_header(
        till.shop.service.db, till.settings.network, till.explorers(), till.clock
    )
    assert first_of(till) == last_before(rival, at)
    # Halves of the pages of ten; two pages below it, and those above it.
    above = min(MOST_COMPARED, rival.height - first_of(till)) // 10
    assert (
        till.liar.count("^/blocks")
        <= (count // 10 + 1).bit_length() + 2 + 2 + above + 3
    )


def test_times_that_go_back_and_forth_end_at_a_block_that_is_old_enough(till):
    rival = Rival(till, 0)
    for number in range(200, 0, -1):
        rival.add(at=till.now - number * 600 + (number % 3) * 1500)
    since(till, till.clock() - timedelta(hours=10))
    till.liar.instead = rival
    assert till.check().complete
    assert rival.blocks[first_of(till)].time <= till.now - 12 * 3600


def refused(till, *roots):
    report = till.check(*roots)
    assert report.chain_failed and not report.complete
    assert first_of(till) is None and report.blocks_read == 0


def true_first(till):
    """Height of the last block two hours before now, when the shop's invoice was made."""
    ledger = till.sandbox.chain.ledger
    times = [ledger.blocks[hash].time for hash in ledger.hashes]
    return max(height for height, time in enumerate(times) if time <= till.now - 7200)


def standing_still(till, behind):
    return Rival(till, till.sandbox.chain.ledger.height - behind)


def mislabelled(till, by):
    """The same chain, of which each block is said to be so many lower."""
    ledger = till.sandbox.chain.ledger
    shown = {
        height - by: ledger.blocks[hash] for height, hash in enumerate(ledger.hashes)
    }
    shown[0] = ledger.blocks[ledger.hashes[0]]
    return lambda path: of_blocks(shown, ledger.height - by, path)


def hiding_the_last(till, count):
    """In place of the last so many blocks it shows the newest ones, until it has shown a block."""
    ledger = till.sandbox.chain.ledger
    asked = list[str]()
    blocks = [ledger.blocks[hash] for hash in ledger.hashes]

    def answer(path):
        asked.append(path)
        height = int(path.split("/")[2]) if re.fullmatch("/blocks/[0-9]+", path) else 0
        if height <= ledger.height - count or any(
            path.endswith("/raw") for path in asked
        ):
            return None
        return of_blocks({height - n: blocks[-1 - n] for n in range(10)}, height, path)

    return answer


LIARS: dict[str, Callable[[LiedTo], Callable[[str], Reply | None]]] = {
    "stands still for weeks": lambda till: standing_still(till, 40),
    "labels heights falsely": lambda till: mislabelled(till, 7),
    "hides the blocks of weeks": lambda till: hiding_the_last(till, 44),
    "has a chain of less work": lambda till: standing_still(till, 40).add(20),
    "has a longer chain of old": lambda till: standing_still(till, 90).add(
        120, at=till.now - 50_000
    ),
}


@pytest.mark.parametrize("kind", LIARS)
@pytest.mark.parametrize("place", ["the first", "the second"])
def test_beside_an_honest_one_no_liar_says_where_to_begin(till, open_liar, kind, place):
    second = open_liar(till)
    till.clock.move(days=20)
    till.mine(20)
    till.clock.move(hours=3)
    till.mine(20)
    invoice = till.pay_in_block()
    liar = till.liar if place == "the first" else second
    expected = true_first(till)
    liar.instead = LIARS[kind](till)
    report = till.check(till.liar.root, second.root)
    assert first_of(till) == expected and report.new_statuses == {invoice["id"]: "paid"}


def test_pages_of_two_chains_begin_nothing(till):
    till.shop.invoice()
    other = standing_still(till, 60).add(60, at=till.now - 50_000)
    seam = true_first(till) // 10 * 10

    def answer(path):
        page = re.fullmatch("/blocks/([0-9]+)", path)
        return other(path) if page and int(page[1]) < seam else None

    till.liar.instead = answer
    with pytest.raises(ExplorerError, match="shows headers that do not form a chain"):
        keep_first_header(
            till.shop.service.db, till.settings.network, till.explorers(), till.clock
        )


def test_where_a_tip_has_an_age_an_older_one_begins_nothing(till):
    """As on mainnet, also when nobody else is set: it is asked again in the next run."""
    till.shop.invoice()
    mainly = replace(till.settings.network, tip_max_age=timedelta(hours=2))
    db = till.shop.service.db
    till.clock.move(hours=2, minutes=1)
    with pytest.raises(ExplorerError, match="shows no block that is younger"):
        keep_first_header(db, mainly, till.explorers(), till.clock)
    till.mine()
    assert keep_first_header(db, mainly, till.explorers(), till.clock)


@pytest.mark.parametrize(
    ("height", "is_right", "error"),
    [
        (100, True, ""),
        (100, False, "shows another block 100 than regtest has"),
        (10_000, True, "answered HTTP 404"),
    ],
    ids=["it has the block", "it has another", "it has none so high"],
)
def test_a_chain_without_the_checkpoint_is_not_believed(till, height, is_right, error):
    till.shop.invoice()
    hash = till.sandbox.chain.ledger.hashes[100] if is_right else "00" * 32
    network = replace(till.settings.network, checkpoint=BlockId(height, hash))
    explorers = Explorers(network, [till.liar.root], http_client.Session(4))
    db = till.shop.service.db
    if error:
        with pytest.raises(ExplorerError, match=error):
            keep_first_header(db, network, explorers, till.clock)
    assert bool(error) or keep_first_header(db, network, explorers, till.clock)


@pytest.mark.parametrize("status", [404, 429, 500])
@pytest.mark.parametrize("which", ["the first", "the second"])
def test_where_one_of_two_answers_its_word_does_and_that_is_said(
    till, open_liar, status, which, caplog
):
    second = open_liar(till)
    till.shop.invoice()
    mute = till.liar if which == "the first" else second
    mute.instead = lambda _: say("no", status)
    assert till.check(till.liar.root, second.root).complete
    assert "only 127.0.0.1 says where reading begins" in caplog.text


def test_when_nobody_answers_the_reason_is_kept_until_reading_begins(till, open_liar):
    second = open_liar(till)
    till.shop.invoice()
    till.liar.instead = second.instead = lambda _: say("no", 404)
    refused(till, till.liar.root, second.root)
    db = till.shop.service.db
    assert "no source answered: 127.0.0.1 answered HTTP 404" in meta.get(
        db, Key.NOT_BEGUN
    )
    till.liar.instead = lambda _: None
    assert till.check().complete and meta.get(db, Key.NOT_BEGUN) == ""


def test_only_one_of_two_runs_at_once_stores_the_first_header(till):
    """The other has begun meanwhile: what it keeps stands."""
    till.shop.invoice()
    db = till.shop.service.db
    network = till.settings.network
    till.liar.lies = {"^/blocks/tip/height$": lambda shown: [once(), shown][1]}
    begun: list[bool] = []

    def once():
        if not begun:
            begun.append(True)
            keep_first_header(db, network, till.explorers(till.liar.honest), till.clock)

    assert keep_first_header(db, network, till.explorers(), till.clock) and begun
    assert len(db.rows(blocks.ABOVE, height=-1)) == 1 + BELOW


def idle(till):
    """Its only invoice was canceled long ago, and nothing was ever paid."""
    invoice = till.shop.invoice()
    assert till.check().complete
    finish(till.shop, invoice, "canceled")


def test_an_idle_shop_is_not_said_to_be_behind(till):
    """The last two hours' blocks wait unread for an invoice that may be made."""
    idle(till)
    till.clock.move(days=8)
    till.mine_and_check(30)
    db = till.shop.service.db
    assert db.get(blocks.UNREAD)[0] > 0
    assert progress_of(db, till.clock()).behind == 0
    invoice = till.shop.invoice()
    assert progress_of(db, till.clock()).behind > 0
    till.check()
    assert progress_of(db, till.clock()).behind == 0 and till.look(invoice)


def test_an_idle_shop_goes_on_at_the_tip_when_an_invoice_comes(till):
    idle(till)
    till.clock.move(days=8)
    till.mine_and_check(30)
    till.clock.move(hours=3)
    till.mine_and_check(2)
    invoice = till.pay_in_block()
    till.clock.move(hours=1)
    report = till.check()
    assert report.new_statuses == {invoice["id"]: "paid"} and report.complete
    assert (
        report.blocks_read == 3
    )  # the invoice's, and two that are not two hours older


@pytest.mark.parametrize(("days", "reads"), [(6.9, True), (7.1, False)])
def test_a_shop_is_idle_a_week_after_its_last_invoice_ended(till, days, reads):
    idle(till)
    till.clock.move(days=days)
    till.mine()
    assert (till.check().blocks_read == 1) == reads


@pytest.mark.parametrize("depth", [1, 6, 12])
def test_where_no_block_came_for_long_a_reorganisation_is_followed_all_the_same(
    till, depth
):
    """The first block that is kept is the tip; what leaves is below it."""
    till.clock.move(hours=9)
    invoice = till.shop.invoice()
    assert till.check().complete
    till.sandbox.chain.reorganise(depth, till.now)
    assert till.confirm(invoice).new_statuses == {invoice["id"]: "paid"}
