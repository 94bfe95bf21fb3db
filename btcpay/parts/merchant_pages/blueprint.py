"""The blueprint of the merchant's pages: access control, and the view of each path.

A view is the function that handles a request.
"""

from functools import partial

from flask import Blueprint, Response, g, request

from btcpay import hooks
from btcpay.backup.pending import discard_idle
from btcpay.merchants import sessions
from btcpay.parts.merchant_pages import (
    attention,
    home,
    invoice,
    link_form,
    links,
    queries,
    sales_report,
    till,
)
from btcpay.parts.merchant_pages.developers import keys, webhooks
from btcpay.parts.merchant_pages.lists import downloads, sales
from btcpay.parts.merchant_pages.login import LoginViews
from btcpay.parts.merchant_pages.menu import front_page_link
from btcpay.parts.merchant_pages.password import (
    PasswordViews,
    choose_shop,
    show_shops,
)
from btcpay.parts.merchant_pages.restore import RestoreViews
from btcpay.parts.merchant_pages.session_cookie import (
    session_secret,
    set_session_cookie,
)
from btcpay.parts.merchant_pages.settings import (
    backup,
    devices,
    index,
    mail_server,
    shop,
)
from btcpay.parts.merchant_pages.start import StartViews
from btcpay.parts.merchant_pages.visit import MAX_UPLOAD_BYTES, ROOT, Visit
from btcpay.values.errors import Forbidden, Unauthorized
from btcpay.web.admission import (
    caller_windows,
    count_request,
    failed_auth_windows,
    guard,
    refuse_other_sites,
    visit_windows,
)
from btcpay.web.pages.forms import read_form
from btcpay.web.pages.render import Pages, View
from btcpay.web.paths import add_pages, add_path, redirect_to_page, refuse_others
from btcpay.web.rate_limits import READS, WRITES
from btcpay.web.service import Service
from storage.queries import sessions as session_queries

TILL = f"{ROOT}/till"  # a till-only session may use only this path and those below it


def _isolate(response: Response) -> Response:
    """Adds headers that keep other hosts' pages from embedding or controlling these pages.

    Without the headers, a page of a sibling host could do both. For example,
    `shop.example.com` is a sibling host of `pay.example.com`.
    """
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return response


def _keep_to_till() -> None:
    """Raises Forbidden if a till-only session requests a page that is not part of the till."""
    rule = str(request.url_rule)
    is_of_till = rule == TILL or rule.startswith(f"{TILL}/")
    if g.caller.till_only and not is_of_till:
        raise Forbidden("this device opens the till alone")


# The method, the path below ROOT and the view of each page for a logged-in merchant. A
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
    ("GET", "/month", sales_report.show_month),
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
    ("GET", "/till/tip", till.ask_gratuity),
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


def blueprint(service: Service) -> Blueprint | None:
    """Returns the blueprint of the merchant's pages; None if the settings switch them off.

    A request to another path below ROOT, or with another method, gets an error page.
    This function also deletes uploaded backups that an earlier process has not restored.
    """
    if not service.settings.merchant_pages:
        return None
    discard_idle(service.settings)
    pages = Pages(service, (), "merchant/message.html", "merchant.css")
    outer = Blueprint("merchant", __name__, template_folder="templates")
    outer.register_error_handler(Exception, pages.error_page)
    outer.after_request(pages.add_security_headers)
    outer.after_request(_isolate)
    outer.register_blueprint(_open_pages(service, pages))
    outer.register_blueprint(_session_pages(service, pages))
    return outer


def _open_pages(service: Service, pages: Pages) -> Blueprint:
    """Returns the blueprint of the pages that need no session.

    The path of one of them, a file for the accountant, is not below ROOT.
    """
    blueprint = Blueprint("open", __name__)
    login = LoginViews(service, pages)
    password = PasswordViews(service, pages)
    start = StartViews(service, pages)
    blueprint.before_request(guard(service, lambda _: visit_windows(service)))
    views: list[tuple[str, str, View]] = [
        ("GET", f"{ROOT}/login/<secret>", login.show_login),
        ("POST", f"{ROOT}/login/<secret>", login.log_in),
        ("GET", f"{ROOT}/login", password.show),
        ("POST", f"{ROOT}/login", partial(_log_in, service, login, password)),
        ("GET", f"{ROOT}/login/mailed", login.show_mail_requested),
        ("GET", f"{ROOT}/login/logged-out", login.show_logged_out),
        ("GET", f"{ROOT}/start/<token>", start.show),
        ("POST", f"{ROOT}/start/<token>", start.press),
        ("GET", "/file/<secret>", partial(downloads.send_file_of_link, service)),
        *RestoreViews(service, pages).views(),
    ]
    add_pages(blueprint, views)
    add_path(blueprint, f"{ROOT}/", redirect_to_page, f"GET {ROOT}/")
    refuse_others(blueprint, *{path for _, path, _ in views})
    return blueprint


def _log_in(service: Service, login: LoginViews, password: PasswordViews) -> Response:
    """Handles the login page's two forms: one has a password, one requests a mailed link.

    If no owner's password is set, the page never has the first form.
    """
    refuse_other_sites(service)
    form = read_form()
    if "address" in form or not service.owner_password.is_set:
        return login.mail_link(form)
    return password.log_in(form)


def _session_pages(service: Service, pages: Pages) -> Blueprint:
    """Returns the blueprint of the pages that need a session.

    It includes the pages of parts (optional plug-ins).
    """
    blueprint = Blueprint("inside", __name__)
    windows = caller_windows(READS, WRITES)
    blueprint.before_request(
        guard(service, windows, lambda: _session(service), MAX_UPLOAD_BYTES)
    )
    blueprint.before_request(_keep_to_till)
    views = [(method, ROOT + path, view) for method, path, view in SESSION_VIEWS]
    for part in hooks.of(hooks.MerchantViews):
        views += part.views(service.settings)
    for method, path, view in views:
        respond = partial(_respond, service, pages, view)
        add_path(blueprint, path, respond, f"{method} {path}", method)
    refuse_others(blueprint, *{path for _, path, _ in views}, f"{ROOT}/<rest:rest>")
    return blueprint


def _respond(service: Service, pages: Pages, view: View, **values: str) -> Response:
    """Calls the view, and returns its response.

    Raises Forbidden if the request is a form that was shown in another session.
    """
    secret = session_secret(service)
    visit = Visit(service, pages, g.caller, secret, service.now())
    if request.method == "POST" and not visit.is_own_form():
        raise Forbidden("this form is not of this session")
    response = view(visit, **values)
    # A view of a POST may have replaced or deleted the cookie, which must stay so.
    if request.method != "POST":
        set_session_cookie(service, response, secret)
    return response


def _session(service: Service) -> queries.Session:
    """Returns the session of the browser.

    Raises Unauthorized if the browser has no valid session, Forbidden if another site
    sent the form, and RateLimited after too many requests without a valid session.
    """
    if request.method == "POST":
        refuse_other_sites(service)
    secret = session_secret(service)
    now = service.now()
    session = None
    if secret:
        session = sessions.session_of(
            service.db, queries.SESSION, secret, now, service.owner_password.scrypt
        )
    if session:
        service.notes.note(session_queries.USED, session.id, now)
        return session
    # A wrong secret may be a guess. A visitor without a cookie has guessed nothing.
    if secret:
        count_request(service, failed_auth_windows())
    else:
        count_request(service, visit_windows(service))
    raise Unauthorized("log in with a new link")


HOOK = hooks.Pages(blueprint=blueprint, front_page_link=front_page_link)
