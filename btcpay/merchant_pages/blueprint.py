"""The merchant's pages as one blueprint: who may see them, every path and its view."""

from collections.abc import Callable
from functools import partial

from flask import Blueprint, Response, g, request

from btcpay.merchant_pages import home, invoice, links, takings, till
from btcpay.merchant_pages.lists import downloads, search
from btcpay.merchant_pages.settings import programs, shop
from btcpay.merchant_pages.visit import MAX_UPLOAD_BYTES, ROOT, Visit, keep, presented
from btcpay.merchant_pages.way_in import WayIn
from btcpay.merchants import sessions
from btcpay.values.errors import Forbidden, Unauthorized
from btcpay.values.parts import brought
from btcpay.web.admission import count, door, of_caller, refuse_other_sites, visits, wrong
from btcpay.web.pages.render import Pages
from btcpay.web.paths import add_path, refuse_others
from btcpay.web.rate_limits import READS, WRITES
from btcpay.web.service import Service
from storage.queries import sessions as stored

TILL = f"{ROOT}/till"  # what is served at this path, and below it, a till-only session may use
View = Callable[..., Response]


def _kept_apart(response: Response) -> Response:
    """No page of a neighbouring host (`shop.example.com`) may embed a file or hold a window."""
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return response


def _keep_to_till() -> None:
    """Raises Forbidden when a till-only session asks for anything but the till and its sales."""
    rule = str(request.url_rule)
    if g.caller.till_only and rule != TILL and not rule.startswith(f"{TILL}/"):
        raise Forbidden("this device opens the till alone")


class Area:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.pages = Pages(service, (), "merchant/message.html", "merchant.css")
        self.blueprint = Blueprint("merchant", __name__, template_folder="templates")
        self.blueprint.register_error_handler(Exception, self.pages.failed)
        self.blueprint.after_request(self.pages.guard)
        self.blueprint.after_request(_kept_apart)
        self._open = Blueprint("open", __name__)
        self._open.before_request(door(service, lambda _: visits(service)))
        self._inside = Blueprint("inside", __name__)
        windows = of_caller(READS, WRITES)
        self._inside.before_request(door(service, windows, self._session, MAX_UPLOAD_BYTES))
        self._inside.before_request(_keep_to_till)
        self._paths = {self._open: set[str](), self._inside: {f"{ROOT}/<rest:rest>"}}
        self.blueprint.register_blueprint(self._open)
        self.blueprint.register_blueprint(self._inside)

    def whole(self) -> Blueprint:
        """The blueprint; every other request to its paths, and to any below ROOT, gets a page."""
        for part, paths in self._paths.items():
            refuse_others(part, *paths)
        return self.blueprint

    def open(self, method: str, path: str, view: View) -> None:
        """Serves a page to anybody; its path need not lie below /merchant."""
        add_path(self._open, path, view, f"{method} {path}", method)
        self._paths[self._open].add(path)

    def get(self, path: str, view: View) -> None:
        self.add("GET", ROOT + path, view)

    def post(self, path: str, view: View) -> None:
        self.add("POST", ROOT + path, view)

    def add(self, method: str, path: str, view: View) -> None:
        """Serves a logged-in merchant: `view(visit, **path values)`.

        A form has to be of this session and this site.
        """

        def answered(**values: str) -> Response:
            secret, now = presented(self.service), self.service.now()
            visit = Visit(self.service, self.pages, g.caller, secret, now)
            if method == "POST" and not visit.is_own_form():
                raise Forbidden("this form is not of this session")
            response = view(visit, **values)
            if method == "GET":
                keep(self.service, response, secret)
            return response

        add_path(self._inside, path, answered, f"{method} {path}", method)
        self._paths[self._inside].add(path)

    def _session(self) -> stored.Session:
        """The session of the browser; a form must come from this site. Raises Unauthorized."""
        if request.method == "POST":
            refuse_other_sites(self.service)
        service, secret, now = self.service, presented(self.service), self.service.now()
        if session := sessions.session_of(service.db, secret, now) if secret else None:
            service.notes.note(stored.USED, session.id, now)
            return session
        count(service, wrong() if secret else visits(service))
        raise Unauthorized("log in with a new link")


def blueprint(service: Service) -> Blueprint | None:
    if not service.settings.merchant_pages:
        return None
    area = Area(service)
    way_in = WayIn(service, area.pages)
    area.open("GET", f"{ROOT}/login/<secret>", way_in.show_login)
    area.open("POST", f"{ROOT}/login/<secret>", way_in.log_in)
    area.open("POST", f"{ROOT}/login", way_in.mail_link)
    area.open("GET", f"{ROOT}/start/<token>", way_in.show_start)
    area.open("POST", f"{ROOT}/start/<token>", way_in.start)
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
    area.post("/till/log-out", programs.log_out)
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
    area.get("/sessions", programs.show_devices)
    area.post("/sessions", programs.add_device)
    area.post("/sessions/<id>/end", programs.end_device)
    area.post("/sessions/end-others", programs.end_other_devices)
    for part in brought("merchant_views"):
        for method, path, view in part.views(service.settings):
            area.add(method, path, view)
    return area.whole()
