"""The merchant's pages about refunds.

A refund is created on its invoice's page. The list of refunds begins with the refunds
that the merchant has to send.
"""

from functools import partial

from flask import Response

from btcpay import hooks
from btcpay.invoices.quotes import live_price
from btcpay.parts.refunds import (
    actions,
    manual,
    on_other_pages,
    pay_many,
    queries,
    steps,
    sums,
)
from btcpay.parts.refunds.kinds import RESOURCE
from btcpay.settings.settings import Settings
from btcpay.values.amounts import LONGEST_AMOUNT
from btcpay.values.errors import ChangeRefused, PriceUnavailable
from btcpay.values.ids import ID_CHARACTERS
from btcpay.values.money import Money
from btcpay.values.statuses import RefundStatus
from btcpay.values.texts import TextRefused
from btcpay.web.pages.forms import AmountRefused
from btcpay.web.pages.qr import payment_uri, qr_svg
from btcpay.web.pages.render import View
from btcpay.web.pages.visit import Visit
from storage.queries import attentions

MOST = 50  # the maximum number of refunds in each list on the page


def views(settings: Settings) -> list[tuple[str, str, View]]:
    """Returns the merchant's pages about refunds: each with its method, path and view function."""
    return [
        ("GET", "/merchant/refunds", show),
        ("GET", "/merchant/refunds/pay-many", download),
        ("POST", "/merchant/invoices/<id>/refund", make),
        ("POST", "/merchant/refunds/<id>/sent/<output>", confirm_sent),
        (
            "POST",
            "/merchant/refunds/<id>/clear",
            partial(_drop, steps.CLEARED, "cleared"),
        ),
        (
            "POST",
            "/merchant/refunds/<id>/cancel",
            partial(_drop, steps.CANCELED, "canceled"),
        ),
    ]


def show(visit: Visit) -> Response:
    """Returns the page of refunds: first the refunds to be sent, then the others.

    The refunds to be sent are sorted oldest first, the others newest first.
    """
    db = visit.service.db
    base_url = visit.service.settings.base_url
    ready = _ready_refunds(visit)
    candidates = {row.id: manual.candidates(db, row) for row in ready}
    unsent = [row for row in ready if not candidates[row.id]]
    others = db.rows(
        queries.OTHERS_OF_MERCHANT, merchant_id=visit.merchant_id, limit=MOST
    )
    requested = []
    ended = []
    for row in others:
        if row.status == RefundStatus.REQUESTED:
            requested.append(row)
        else:
            ended.append(row)
    uris = {row.id: payment_uri(row.address or "", row.amount_sats) for row in ready}
    urls = {row.id: RESOURCE.url_of(base_url, row.id) for row in requested}
    qr_texts = uris | urls
    codes = {id: qr_svg(text) for id, text in qr_texts.items()}
    return visit.page(
        "refunds.html",
        ready=ready,
        candidates=candidates,
        unsent=unsent,
        unsent_sats=sum(row.amount_sats for row in unsent),
        uris=uris,
        urls=urls,
        codes=codes,
        requested=requested,
        ended=ended,
        worth_of=sums.worth_of,
    )


def _ready_refunds(visit: Visit) -> list[queries.RefundWith]:
    """Returns the refunds that the merchant has to send, oldest first, at most MOST."""
    return visit.service.db.rows(
        queries.READY_OF_MERCHANT, merchant_id=visit.merchant_id, limit=MOST
    )


def download(visit: Visit) -> Response:
    """Returns a CSV file, with which a wallet sends several refunds by one transaction.

    The file contains the refunds to be sent. A refund that may have been sent already
    is left out: the page of refunds asks the merchant about it.
    """
    db = visit.service.db
    unsent = [row for row in _ready_refunds(visit) if not manual.candidates(db, row)]
    response = Response(pay_many.lines_of(unsent), mimetype="text/csv")
    name = f"refunds-{visit.now:%Y-%m-%d-%H%M}.csv"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def make(visit: Visit, id: str) -> Response:
    """Creates a refund of the invoice `id`, and redirects (303) to the list of refunds.

    If that fails, redirects to the invoice's page, which shows the error. If the
    browser sends the same form twice, only one refund is created.
    """
    visit.get_or_404(attentions.INVOICE, "inv", id)
    if sums.is_sent_twice(visit.service.db, id):
        return visit.redirect(f"/invoices/{id}", done="refund_changed")
    service = visit.service
    try:
        request = _request_of(visit, id)
        actions.make(service.db, service.settings, request, visit.now)
    except AmountRefused as error:
        entry = visit.form.get("amount", "").strip()[:LONGEST_AMOUNT]
        return visit.redirect(
            f"/invoices/{id}", done=f"refund_{error.code}", amount=entry
        )
    except (PriceUnavailable, ChangeRefused) as error:
        return visit.redirect(f"/invoices/{id}", done=f"refund_{error.code}")
    except TextRefused as error:
        query = {"done": "refund_reason"}
        if error.sign:
            query["sign"] = error.sign
        return visit.redirect(f"/invoices/{id}", **query)
    return visit.redirect("/refunds", done="made")


def _request_of(visit: Visit, invoice_id: str) -> actions.RefundRequest:
    """Returns the form's request for a refund of this invoice.

    Raises AmountRefused, PriceUnavailable or ChangeRefused if the form has an amount of
    money that cannot be read or converted.
    """
    form = visit.form
    request = actions.RefundRequest(
        merchant_id=visit.merchant_id,
        invoice_id=invoice_id,
        reason=form.get("reason", "").strip() or None,
        address=form.get("address"),
        id=f"rfd_{visit.form_secret()[:ID_CHARACTERS]}",
        left_sats=form.get("left"),
    )
    text = form.get("amount", "").strip()
    # If the amount is still the one that the form offered, the refund is of exactly what
    # is left.
    if not text or text == form.get("offered"):
        return request
    prices = visit.service.prices
    price = live_price(prices, visit.now, visit.currency).in_currency
    amount = visit.amount(text)
    return request._replace(
        amount_sats=sums.sats_at(amount, price),
        asked=Money(amount, visit.currency),
    )


def confirm_sent(visit: Visit, id: str, output: str) -> Response:
    """Stores the merchant's statement that `output` sent the refund.

    `output` is "txid:vout". The merchant says so if no output pays exactly the refund's
    sum. Redirects (303) to the list of refunds.
    """
    visit.get_or_404(queries.BY_ID, "rfd", id)
    service = visit.service
    outcome = "sent"
    try:
        outpoint = manual.read_outpoint(output)
        manual.confirm_sent(service.db, service.settings, id, outpoint, visit.now)
    except ChangeRefused:
        outcome = "changed"
    return visit.redirect("/refunds", done=outcome)


def _drop(to: steps.Step, outcome: str, visit: Visit, id: str) -> Response:
    """Applies the step to the refund, and redirects (303) to the list of refunds."""
    visit.get_or_404(queries.BY_ID, "rfd", id)
    try:
        actions.drop(visit.service.db, id, to, visit.now)
    except ChangeRefused as refusal:
        outcome = refusal.code
    return visit.redirect("/refunds", done=outcome)


HOOK = hooks.MerchantViews(
    views=views,
    menu_item=on_other_pages.menu_item,
    inbox=queries.TO_SEND,
    inbox_lines=on_other_pages.inbox_lines,
    today_counts={"refunds_to_send": queries.TO_SEND_OF_OUTER},
    today_lines=on_other_pages.today_lines,
    month_lines=on_other_pages.month_lines,
    sale_state=queries.OF_SALE,
    sale_note=on_other_pages.sale_note,
    invoice_card=on_other_pages.invoice_card,
)
