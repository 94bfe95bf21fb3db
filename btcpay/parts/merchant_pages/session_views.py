"""The table of the merchant's pages that need a session."""

from functools import partial

from btcpay.parts.merchant_pages import (
    attention,
    home,
    invoice,
    link_form,
    links,
    month,
    till,
    till_gratuity,
)
from btcpay.parts.merchant_pages.developers import keys, webhooks
from btcpay.parts.merchant_pages.lists import downloads, sales
from btcpay.parts.merchant_pages.password import choose_shop, show_shops
from btcpay.parts.merchant_pages.settings import (
    backup,
    devices,
    index,
    mail_server,
    shop,
)
from btcpay.web.pages.render import View

# The method, the path below `visit.ROOT` and the view of each page for a logged-in merchant. A
# view is called as `view(visit, **path values)`.
SESSION_VIEWS: list[tuple[str, str, View]] = [
    ("GET", "", home.show),
    ("GET", "/attention", attention.show),
    ("POST", "/attention/set-aside", attention.set_small_aside),
    ("GET", "/invoices", sales.show_invoices),
    ("GET", "/invoices/<id>", invoice.show),
    ("POST", "/invoices/<id>/accept", invoice.accept),
    ("POST", "/invoices/<id>/set-aside", invoice.set_aside),
    ("POST", "/invoices/<id>/cancel", invoice.cancel),
    ("GET", "/month", month.show),
    ("GET", "/more", home.show_more),
    ("GET", "/payments", sales.show_payments),
    ("GET", "/downloads", downloads.show),
    ("GET", "/downloads/payments", downloads.send_payments),
    ("POST", "/files", downloads.make_link),
    ("POST", "/files/<id>/revoke", downloads.revoke),
    ("GET", "/till", till.show_form),
    ("POST", "/till", till.press),
    ("GET", "/till/manifest", till.show_manifest),
    ("POST", "/tips", till.set_gratuities),
    ("GET", "/till/tip", till_gratuity.ask_gratuity),
    ("GET", "/till/<id>", till.show_invoice),
    ("POST", "/till/log-out", devices.log_out),
    ("GET", "/links", links.show_links),
    ("POST", "/links", link_form.make),
    ("GET", "/links/new", link_form.show_form),
    ("GET", "/links/<id>", links.show_link),
    ("POST", "/links/<id>", link_form.make),
    ("GET", "/links/<id>/edit", link_form.show_edit),
    ("GET", "/links/<id>/card", links.show_card),
    ("POST", "/links/<id>/activate", partial(links.switch, active=True)),
    ("POST", "/links/<id>/deactivate", partial(links.switch, active=False)),
    ("GET", shop.PATH, index.show),
    *shop.views(),
    ("GET", mail_server.PATH, mail_server.show),
    ("POST", mail_server.PATH, mail_server.save),
    ("POST", f"{mail_server.PATH}/test", mail_server.test),
    ("POST", f"{mail_server.PATH}/remove", mail_server.remove),
    ("GET", "/keys", keys.show_keys),
    ("POST", "/keys", keys.issue_key),
    ("GET", "/keys/<id>", keys.show_key),
    ("POST", "/keys/<id>/revoke", keys.revoke_key),
    ("GET", "/webhooks", webhooks.show_webhooks),
    ("POST", "/webhooks", webhooks.add_webhook),
    ("GET", "/webhooks/<id>", webhooks.show_webhook),
    ("POST", "/webhooks/<id>/test", webhooks.test_webhook),
    ("POST", "/webhooks/<id>/send", webhooks.send_all_now),
    ("POST", "/webhooks/<id>/events/<event>/send", webhooks.send_again),
    ("POST", "/webhooks/<id>/remove", webhooks.remove_webhook),
    ("GET", "/sessions", devices.show_devices),
    ("POST", "/sessions", devices.add_device),
    ("POST", "/sessions/<id>/end", devices.end_device),
    ("POST", "/sessions/end-others", devices.end_other_devices),
    ("GET", "/backup", backup.show),
    ("POST", "/backup", backup.send),
    ("GET", "/shops", show_shops),
    ("POST", "/shops", choose_shop),
]
