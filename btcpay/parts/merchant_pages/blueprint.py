"""The blueprint of the merchant's pages: who may request them, and how a view is called.

A view is the function that handles a request.
"""

from functools import partial

from flask import Blueprint, Response, g, request

from btcpay import hooks
from btcpay.backup.pending import discard_idle
from btcpay.merchants import sessions
from btcpay.parts.merchant_pages.lists import downloads
from btcpay.parts.merchant_pages.login import LoginViews
from btcpay.parts.merchant_pages.menu import front_page_link
from btcpay.parts.merchant_pages.password import PasswordViews
from btcpay.parts.merchant_pages.restore import RestoreViews
from btcpay.parts.merchant_pages.session_cookie import (
    session_secret,
    set_session_cookie,
)
from btcpay.parts.merchant_pages.session_queries import SESSION, Session
from btcpay.parts.merchant_pages.session_views import SESSION_VIEWS
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


def _session(service: Service) -> Session:
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
            service.db, SESSION, secret, now, service.owner_password.scrypt
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
