"""The events of a shop, and a life in which each kind happens."""

from btcpay.notify.events import Event, events_after
from btcpay.notify.kinds import Kind
from btcpay.notify.outbox import Outbox, new_send
from btcpay.sandbox.payer.wallet import double_spends, replace
from schemas.resources import Resources
from tests.support.fake_esplora import Terminal, Till
from tests.support.paths import GONE


def events(till: Till, since: int = 0) -> list[Event]:
    return events_after(
        till.shop.service.db, Resources(till.settings.base_url), since, limit=1000
    )


def kinds(till: Till, since: int = 0) -> list[str]:
    return [event.kind.value for event in events(till, since)]


def deliver(till: Till, timeout_s: float = 60) -> tuple[int, int]:
    """Makes what is due; the numbers of deliveries that were taken, and not."""
    send = new_send(till.settings, timeout_s)
    result = Outbox(till.shop.service.db, till.settings, till.clock, send).run()
    return result.delivered, result.failed


def live_through_all(till: Till) -> dict[Kind, Event]:
    """The last event of each kind, after a life in which all of them happen."""
    if "refunds" not in GONE:
        _live_through_refunds(till)
    if "bills" not in GONE:
        _live_through_bills(till)
    order = {"description": "Two bags of coffee", "customer_email": "ada@example.com"}
    till.confirm(till.shop.invoice(40, expires_in_hours=24))
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    waits = till.shop.invoice(25, **order)
    txid = till.pay(waits)
    till.check(), till.look_for(waits)
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.look_for(waits)
    till.shop.invoice(5, expires_in_hours=1)
    canceled = till.shop.invoice(25)
    link = till.shop.link(title="Tip jar")
    Terminal(till).run("invoice", "cancel", canceled["id"])
    Terminal(till).run("link", "deactivate", link["id"])
    till.clock.move(hours=2)
    till.mine()
    till.check(), till.check()
    return {event.kind: event for event in events(till)}


def _live_through_refunds(till: Till) -> None:
    terminal, to = (
        Terminal(till),
        "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202",
    )  # nobody's
    invoice = till.shop.invoice()
    till.confirm(invoice)
    create = ("refund", "create", invoice["id"], "--reason", "a coat that came back")
    canceled = terminal.json(*create, "--sats", "600")
    terminal.run("refund", "cancel", canceled["id"])
    till.sandbox.wallet.pay(
        to, terminal.json(*create, "--address", to)["amount_sats"], till.now
    )
    till.mine_and_check()
    till.sandbox.chain.reorganise(1, till.now)
    till.check()


def _live_through_bills(till: Till) -> None:
    terminal = Terminal(till)
    words = ("--description", "Rent", "--reference", "A-17")
    create = (
        "bill",
        "create",
        "shop",
        "--amount",
        "25",
        *words,
        "--email",
        "ada@example.com",
    )
    terminal.run("bill", "end", terminal.json(*create, "--every", "month")["id"])
    bill = terminal.json(*create)
    page = till.shop.client.post(f"/bill/{bill['id']}").headers["Location"]
    till.confirm(till.look({"id": page.removeprefix("../pay/")}))
    till.sandbox.chain.reorganise(1, till.now)
    till.check()
    till.mine_and_check()  # so that it is not in what is lost next
