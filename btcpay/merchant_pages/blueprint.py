"""The merchant's pages as one blueprint: every path and the view that answers it."""

from functools import partial

from flask import Blueprint

from btcpay.merchant_pages import home, invoice, links, takings, till
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.lists import downloads, search
from btcpay.merchant_pages.settings import programs, shop
from btcpay.merchant_pages.start import Start
from btcpay.merchant_pages.visit import ROOT
from btcpay.values.parts import brought
from btcpay.web.service import Service


def blueprint(service: Service) -> Blueprint | None:
    if not service.settings.merchant_pages:
        return None
    area = Area(service)
    area.open("GET", f"{ROOT}/login/<secret>", area.show_login)
    area.open("POST", f"{ROOT}/login/<secret>", area.log_in)
    area.open("POST", f"{ROOT}/login", area.mail_link)
    start = Start(area)
    area.open("GET", f"{ROOT}/start/<token>", start.show)
    area.open("POST", f"{ROOT}/start/<token>", start.make)
    area.get("", home.show)
    area.open("GET", f"{ROOT}/", home.lead_here)
    area.get("/attention", invoice.show_needing)
    area.post("/attention/set-aside", invoice.set_small_aside)
    area.get("/invoices", search.show_invoices)
    area.get("/invoices/<id>", invoice.show)
    area.post("/invoices/<id>/accept", invoice.accept)
    area.post("/invoices/<id>/set-aside", invoice.set_aside)
    area.post("/invoices/<id>/cancel", invoice.cancel)
    area.get("/month", takings.show_month)
    area.get("/payments", search.show_payments)
    area.get("/downloads", downloads.show)
    area.get("/downloads/payments", downloads.send_payments)
    area.get("/downloads/labels", downloads.send_labels)
    area.post("/files", downloads.make_link)
    area.open("GET", "/file/<secret>", partial(downloads.send_linked, service))
    area.post("/files/<id>/revoke", downloads.revoke)
    area.get("/till", till.show_form)
    area.post("/till", till.press)
    area.get("/till/manifest", till.show_manifest)
    area.post("/tips", till.set_tips)
    area.get("/till/tip", till.ask_tip)
    area.get("/till/<id>", till.show_invoice)
    area.post("/till/log-out", area.log_out)
    area.get("/links", links.show_links)
    area.post("/links", links.make)
    area.get("/links/new", links.show_form)
    area.get("/links/<id>", links.show_link)
    area.post("/links/<id>", links.make)
    area.get("/links/<id>/edit", links.show_edit)
    area.get("/links/<id>/card", links.show_card)
    area.post("/links/<id>/activate", partial(links.switch, active=True))
    area.post("/links/<id>/deactivate", partial(links.switch, active=False))
    area.get("/settings", shop.show)
    area.post("/settings/<part>", shop.save)
    area.get("/keys", programs.show_keys)
    area.post("/keys", programs.issue_key)
    area.post("/keys/<id>/revoke", programs.revoke_key)
    area.get("/webhooks", programs.show_webhooks)
    area.post("/webhooks", programs.add_webhook)
    area.post("/webhooks/<id>/test", programs.test_webhook)
    area.post("/webhooks/<id>/send", programs.send_all_now)
    area.post("/webhooks/<id>/remove", programs.remove_webhook)
    area.get("/sessions", area.show_devices)
    area.post("/sessions", area.add_device)
    area.post("/sessions/<id>/end", area.end_one)
    area.post("/sessions/end-others", area.end_others)
    for part in brought("merchant_views"):
        for method, path, view in part.views(service.settings):
            area.add(method, path, view)
    return area.whole()
