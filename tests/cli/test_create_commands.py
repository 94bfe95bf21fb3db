"""`invoice create` and `link create`: what the operations do, without a program."""

import pytest

from tests.support.builders import Clock, new_xpub
from tests.support.fake_esplora import open_till
from tests.support.paths import GONE

CREATED = {"id", "created_at", "deposit_address", "pay_url", "link_url", "expires_at"}


@pytest.fixture(scope="module")
def till(tmp_path_factory, ticker):
    with open_till(tmp_path_factory.mktemp("shop"), ticker, Clock()) as till:
        yield till


def assert_same(made, asked):
    """As two resources are that were asked for in the same words."""
    assert made.keys() == asked.keys()
    assert {name for name in made if made[name] != asked[name]} <= CREATED


INVOICES = {
    "an amount alone": ("--usd 25", {"amount_usd": 25}),
    "an amount with cents, as they were written": ("--usd 25.50", {"amount_usd": 25.5}),
    "all options": ("--usd 1e3 --description Tea --email a@b.example --expires-in-hours 0.5",
        {"amount_usd": 1000, "description": "Tea", "customer_email":
        "a@b.example"} | {"expires_in_hours": 0.5}),
}  # fmt: skip


@pytest.mark.parametrize("case", INVOICES)
def test_an_invoice_is_the_one_that_the_operation_makes(case, blocktill, till):
    options, body = INVOICES[case]
    made = blocktill.json("invoice", "create", "shop", *options.split())
    asked = till.shop.invoice(**body)
    assert_same(made, asked)
    assert till.shop.get(f"/invoices/{made['id']}").json == made
    assert made["deposit_address"] != asked["deposit_address"]
    assert (made["expires_at"] is None) == (asked["expires_at"] is None)


LINKS = {
    "a title alone": ("--title Tips", {"title": "Tips"}),
    "a price": ("--amount 12.5 --title Mug", {"amount_usd": 12.5, "title": "Mug"}),
    "bounds": ("--min 1 --max 9.99 --description Tips", {"min_amount_usd": 1, "max_amount_usd":
        9.99, "description": "Tips"}),
}  # fmt: skip


@pytest.mark.parametrize("case", LINKS)
def test_a_link_is_the_one_that_the_operation_makes(case, blocktill, till):
    options, body = LINKS[case]
    made = blocktill.json("link", "create", "shop", *options.split())
    assert_same(made, till.shop.link(**body))
    assert till.shop.get(f"/payment-links/{made['id']}").json == made


@pytest.mark.parametrize(
    "words", ["invoice create shop --usd 25", "link create shop --title Tips"]
)
def test_without_json_the_id_and_the_page_are_printed(words, blocktill, till):
    said, talk = blocktill.run(*words.split())
    id, page = said.splitlines()
    assert talk == "" and page.startswith("http") and page.endswith(id)
    assert (
        till.shop.client.get(page.removeprefix(till.settings.base_url)).status_code
        == 200
    )


MOST = "must be greater than 0 and at most"
REFUSED = {
    "a number with a comma": ("invoice create shop --usd 1,000", "--usd: '1,000' can be read as"),
    "another currency's sign": ("invoice create shop --usd €25", "--usd: the amount is in USD"),
    "an exponent beyond numbers": (f"invoice create shop --usd 1e{'9' * 19}", "is no amount"),
    "a word for a number": ("invoice create shop --usd many", "--usd: 'many' is no amount of USD"),
    "a title that shows nothing": ("link create shop --title \u200d", "give --title or an amount"),
    "a long address, and no time":
        (f"invoice create shop --usd 1 --expires-in-hours 0 --email {'a' * 321}",
        f"--email must be at most 320 characters; --expires-in-hours {MOST} 8,760"),
    "no amount": ("invoice create shop", "say --usd or --amount"),
    "a price and a bound": ("link create shop --amount 5 --min 1",
        "--amount makes the price fixed: leave it or --min out"),
    "no title and no amount": ("link create shop --suggest 5,10,20", "give --title or an amount"),
    "no list of amounts": ("link create shop --suggest five", "such as 5,10,19.90"),
    "suggestions that are one amount too":
        ("link create shop --title a --suggest 19,90", "write 19, 90 for 19 and 90"),
    "suggestions with a thousand":
        ("link create shop --title a --suggest 5,1,000", "such as 5,10,19.90"),
    "an exponent in one": ("link create shop --suggest 1e3", "such as 5,10,19.90"),
}  # fmt: skip


UNSEEN = {
    "a description": ("invoice create shop --usd 5 --description a\u202eb",
        "the description contains U+202E"),
    "a description in its own currency": ("invoice create shop --amount 5 --description a\u202eb",
        "the description contains U+202E"),
    "a link's title": ("link create shop --title a\u200fb", "the title contains U+200F"),
    "a link's title in two lines": ("link create shop --title a\nb", "the title contains U+000A"),
    "a link's description": ("link create shop --title a --description b\u2028c",
        "the description contains U+2028"),
    "a bill's description": ("bill create shop --amount 5 --description a\u200fb",
        "the description contains U+200F"),
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        case
        for case, (words, _) in UNSEEN.items()
        if not words.startswith("bill ") or "bills" not in GONE
    ],
)
def test_a_text_with_a_sign_that_cannot_be_seen_is_refused(case, blocktill, till):
    words, reason = UNSEEN[case]
    before = counters(till)
    said, talk = blocktill.run(*words.split(" "), status=1)
    assert said == "" and reason in talk
    assert counters(till) == before


def test_blanks_of_any_script_become_blanks_and_lines_of_a_description_stay(
    blocktill, till
):
    texts = ["--title", " Tip\u3000jar\u200d", "--description", "One\u00a0tea\r\nTwo"]
    made = blocktill.json("link", "create", "shop", *texts)
    assert (made["title"], made["description"]) == ("Tip jar\u200d", "One tea\nTwo")


def counters(till):
    """The numbers of invoices, of links, and of addresses given out."""
    return till.shop.sql(
        "SELECT (SELECT COUNT(*) FROM invoice), (SELECT COUNT(*) FROM payment_link),"
        " (SELECT MAX(next_index) FROM merchant)"
    ).fetchone()


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_operation_refuses_is_refused_by_the_options_name(
    case, blocktill, till
):
    words, message = REFUSED[case]
    before = counters(till)
    assert message in blocktill.run(*words.split(), status=2)[1]
    assert counters(till) == before


DUST = {  # at 60,000 dollars 294 satoshis are worth 17.64 cents
    "a sum in the merchant's currency": "invoice create shop --amount 0.17",
    "a button": "link create shop --title Tips --suggest 5,0.17",
}


@pytest.mark.parametrize("case", DUST)
def test_less_than_a_wallet_can_send_is_refused(case, blocktill, till):
    before = counters(till)
    said = blocktill.run(*DUST[case].split(), status=1)[1]
    assert "wallets cannot send less than 0.18 USD" in said and counters(till) == before
    blocktill.run(*DUST[case].replace("0.17", "0.18").split())


def test_without_a_price_no_invoice_is_made(blocktill, till):
    before = counters(till)
    nobody = "http://127.0.0.1:9#/usd"
    words = ("invoice", "create", "shop", "--usd", "25")
    output, errors = blocktill.run(*words, status=1, BLOCKTILL_PRICE_SOURCES=nobody)
    assert output == "" and "\nblocktill: " in errors and "price" in errors
    assert "Traceback" not in errors and counters(till) == before


def test_a_link_suggests_amounts(blocktill, till):
    said, _ = blocktill.run(
        "link", "create", "shop", "--min", "1", "--suggest", "5, 10,19.90"
    )
    assert ">$19.90<" in till.shop.client.get(f"/link/{said.split()[0]}").text


AS_PAGES_DO = {
    "a customer's address that is none": "invoice create shop --usd 5 --email nobody",
    "two addresses": "invoice create shop --amount 5 --email ada@a.example,b@b.example",
    "a long name of a key": f"key issue shop --scope read --name {'x' * 61}",
    "a long name of a merchant": f"merchant add {'x' * 61} --yes --xpub",
    "a long name on the pages": f"merchant brand shop --name {'x' * 61}",
    "a merchant's address that is none": "merchant mail shop nobody",
    "a webhook without a host": "webhook add shop https://shop",
    "a long reason to settle": f"invoice settle ID --reason {'x' * 301}",
    "a long reason to dismiss": f"invoice dismiss ID --reason {'x' * 301}",
}


@pytest.mark.parametrize("case", AS_PAGES_DO)
def test_a_command_refuses_what_its_page_refuses(case, blocktill, till):
    id = till.shop.invoice()["id"]
    words = [id if word == "ID" else word for word in AS_PAGES_DO[case].split()]
    words += [new_xpub()] if words[-1] == "--xpub" else []
    keys = "SELECT COUNT(*) FROM api_key"
    before = (counters(till), till.shop.sql(keys).fetchone())
    _, said = blocktill.run(*words, status=1)
    assert "Traceback" not in said
    assert (counters(till), till.shop.sql(keys).fetchone()) == before


def test_a_links_title_of_blanks_is_none(blocktill, till):
    said = blocktill.run("link", "create", "shop", "--title", " \u3000 ", status=2)[1]
    assert "give --title or an amount" in said


def test_a_merchants_name_is_kept_without_blanks_around_it(blocktill, till):
    blocktill.run("merchant", "add", f"  {'x' * 60} ", "--xpub", new_xpub(), "--yes")
    assert "x" * 60 in [row["name"] for row in blocktill.json("merchant", "list")]
