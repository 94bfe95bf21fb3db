"""Makes the HTML part of a mail: the seller, the amount, one button and the facts.

The HTML has tables and `style` attributes, which mail programs support better than
style sheets. It loads nothing from other servers and has no script: the logo is
attached to the mail.
"""

from html import escape

from btcpay.languages import formats
from btcpay.notify.mail.content import MailText, fact_line, one_line
from btcpay.values.colours import USUAL_ACCENT, button_text
from storage.queries.merchants import MailBrand

_WIDTH_PX = 520  # some mail programs scroll a wider mail sideways
_INK = "#171b21"
_QUIET = "#5b6472"
_LINE = "#d9dee5"
_AROUND = "#f1f3f6"
_TABLE = 'role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"'
_BODY = (
    f"margin:0;padding:16px 8px;background:{_AROUND};color:{_INK};"
    "font-family:sans-serif;font-size:16px;line-height:1.5"
)
_CARD = f"max-width:{_WIDTH_PX}px;margin:0 auto;background:#ffffff;border-radius:12px"
_CELL = f"padding:10px 0;border-top:1px solid {_LINE};vertical-align:top"
_BREAK = "overflow-wrap:anywhere;word-break:break-word"


def html_of(mail: MailText, brand: MailBrand, logo_url: str | None) -> str:
    """Returns the HTML document of the mail.

    `logo_url` is the `cid:` URL of the attached logo; None if there is no logo.
    """
    language = mail.language
    lines = [
        "<!doctype html>",
        f'<html lang="{language}" dir="{formats.direction(language)}"><head>',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="color-scheme" content="light"><title>{escape(mail.subject)}</title>',
        f'</head><body style="{_BODY}">',
        f'<table {_TABLE} style="{_CARD}"><tr><td style="padding:24px">',
        _seller(brand, logo_url),
    ]
    if mail.amount:
        lines.append(_paragraph(mail.amount, margin="0", size="32px", weight="bold"))
    for line in mail.within:
        lines.append(_paragraph(line, margin="4px 0 0", size="15px", colour=_QUIET))
    for sentence in mail.sentences:
        lines.append(_paragraph(sentence, margin="12px 0", size="18px"))
    if mail.link:
        lines.append(_button(*mail.link, brand.accent or USUAL_ACCENT))
    if mail.facts:
        lines.append(_facts(mail))
    if mail.footer:
        lines.append(_footer(mail))
    if mail.stop:
        lines.append(_unsubscribe_link(*mail.stop))
    lines.append("</td></tr></table></body></html>\n")
    return "\n".join(lines)


def _seller(brand: MailBrand, logo_url: str | None) -> str:
    """Returns the logo and the seller's name.

    Leaves the name out if the merchant has chosen to show only the logo.
    """
    seller = escape(brand.seller)
    name = f'<bdi style="font-size:18px;font-weight:bold">{seller}</bdi>'
    content = name
    if logo_url:
        alt = ""
        if not brand.name:  # only the logo is to be shown, so its text names the seller
            alt = seller
            name = ""
        style = "max-width:200px;vertical-align:middle;margin-inline-end:8px"
        logo = f'<img src="{escape(logo_url)}" alt="{alt}" height="48" style="{style}">'
        content = f"{logo} {name}"
    return f'<p style="margin:0 0 24px">{content}</p>'


def _paragraph(
    text: str,
    margin: str,
    size: str,
    weight: str = "normal",
    colour: str = _INK,
) -> str:
    font = f"font-size:{size};line-height:1.3;font-weight:{weight};color:{colour}"
    style = f"margin:{margin};{font};{_BREAK}"
    return f'<p style="{style}">{escape(text)}</p>'


def _button(label: str, url: str, accent: str) -> str:
    """Returns the link as a button: a coloured table, which every mail program shows."""
    style = (
        f"display:inline-block;padding:14px 28px;border-radius:8px;color:{button_text(accent)};"
        "font-size:18px;font-weight:bold;text-decoration:none"
    )
    link = f'<a href="{escape(url)}" style="{style}">{escape(label)}</a>'
    return (
        '<table role="presentation" cellpadding="0" cellspacing="0" border="0"'
        ' style="margin:20px 0 24px"><tr>'
        f'<td bgcolor="{accent}" style="background:{accent};border-radius:8px">{link}</td>'
        "</tr></table>"
    )


def _facts(mail: MailText) -> str:
    """Returns the facts as a table, with a row for each label and its text."""
    align = "left"
    if formats.direction(mail.language) == "rtl":
        align = "right"
    label_style = f"{_CELL};font-weight:normal;color:{_QUIET};padding-inline-end:12px"
    rows = []
    for label, text in mail.facts:
        line = escape(fact_line(text))
        rows.append(
            f'<tr><th align="{align}" width="36%" style="{label_style}">{escape(label)}</th>'
            f'<td align="{align}" style="{_CELL};{_BREAK}"><bdi>{line}</bdi></td></tr>'
        )
    style = f"margin:8px 0 0;border-bottom:1px solid {_LINE};font-size:15px"
    table = '<table width="100%" cellpadding="0" cellspacing="0" border="0"'
    return "\n".join([f'{table} style="{style}">', *rows, "</table>"])


def _footer(mail: MailText) -> str:
    lines = "<br>\n".join(
        f"<bdi>{escape(one_line(line))}</bdi>" for line in mail.footer
    )
    style = f"margin:20px 0 0;font-size:14px;color:{_QUIET};{_BREAK}"
    return f'<p style="{style}">{lines}</p>'


def _unsubscribe_link(label: str, url: str) -> str:
    link = f'<a href="{escape(url)}" style="color:{_QUIET}">{escape(label)}</a>'
    return f'<p style="margin:20px 0 0;font-size:14px">{link}</p>'
