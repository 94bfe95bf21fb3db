"""The hooks by which parts (optional plug-ins) join the core: types, callers and times.

A part is a folder in btcpay/parts/. Its `__init__.py` lists the hook classes that the
part implements, in `HOOKS`. Each hook class names a module of the part. That module
ends with an instance of the class:

    HOOK = hooks.AfterCheck(on_check=on_check)

mypy compares each function in the instance with the protocol in this module, including
the names of its arguments. A module of a part is imported when its hook is first
needed, so the check imports no web pages. Parts are called in alphabetical order of
their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

# These imports only serve type annotations. At run time this module imports no other
# module of the project, so that every module can import it.
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, tzinfo
    from decimal import Decimal

    import click
    from flask import Blueprint, Response
    from peewee import Select

    from btcpay.chain.pool import Pool
    from btcpay.chain.sources import BlockSource, Listener
    from btcpay.merchants.keys import IssuedKey
    from btcpay.notify.kinds import PartResource
    from btcpay.notify.mail.content import MailText
    from btcpay.notify.transport import Transport
    from btcpay.proofs.block import ProvenBlock
    from btcpay.settings.settings import Settings
    from btcpay.values.finding import Finding
    from btcpay.web.pages.visit import Line, Visit
    from btcpay.web.service import Service
    from storage.database import Database, Row
    from storage.models import Invoice, Merchant
    from storage.queries.invoices import InvoiceWith
    from storage.statement import Typed

PARTS_FOLDER = Path(__file__).with_name("parts")


class HookError(Exception):
    """A part's modules do not match its `HOOKS`.

    A module or a hook is misspelt, missing or not listed.
    """


@dataclass(frozen=True, kw_only=True)
class Hook:
    """The base class of the hooks.

    `module` is the name of the part's module that defines `HOOK`.
    """

    module: ClassVar[str]


# Pages


class MakeBlueprint(Protocol):
    def __call__(self, service: Service) -> Blueprint | None:
        """Returns the part's Flask blueprint; None if the settings disable the part."""


class FrontPageLink(Protocol):
    def __call__(self, settings: Settings) -> tuple[str, str] | None:
        """Returns a link for the page `/`; None if the settings disable the part.

        The link is its path without the leading slash, and its text in the language of
        the request.
        """


@dataclass(frozen=True, kw_only=True)
class Pages(Hook):
    """Web pages and API operations. Called by `app.py` when the service starts.

    `checkout/views.py` calls `front_page_link` for each visit of `/`.
    """

    module = "blueprint"
    blueprint: MakeBlueprint
    front_page_link: FrontPageLink | None = None


class FrameOf(Protocol):
    def __call__(self, db: Database, invoice: Invoice) -> dict[str, Any] | None:
        """Returns the site that may show the invoice's page in a frame; None if none may.

        The dictionary has `origin`, the site, and `leads_back`, which is True if the
        page returns the visitor to that site automatically.
        """


@dataclass(frozen=True, kw_only=True)
class InvoiceFrame(Hook):
    """Framing of invoice pages. Called by `checkout/views.py` for each invoice page."""

    module = "frame"
    frame_of: FrameOf


class ReceiptLine(NamedTuple):
    """A line of a receipt: its label, its value, and the value's CSS class."""

    term: str
    text: str
    css_class: str


class ReceiptLines(Protocol):
    def __call__(self, db: Database, invoice_id: str) -> Iterable[ReceiptLine]:
        """Returns the part's receipt lines for a paid invoice.

        They are in the language of the request.
        """


class ReturnedSats(Protocol):
    def __call__(self, db: Database, invoice_id: str) -> int:
        """Returns the satoshis that were sent back to the payer of the invoice."""


@dataclass(frozen=True, kw_only=True)
class Receipts(Hook):
    """Receipt lines, and what was sent back. Called by `checkout/snapshot.py`.

    `receipt_lines` is called for each page of a paid invoice, `returned_sats` for each
    page and status of an invoice that has ended or is overpaid.
    """

    module = "receipt"
    receipt_lines: ReceiptLines
    returned_sats: ReturnedSats


class ViewsOf(Protocol):
    def __call__(
        self, settings: Settings
    ) -> list[tuple[str, str, Callable[..., Response]]]:
        """Returns the method, path and view function of each of the part's pages."""


@dataclass(frozen=True)
class MenuItem:
    """An item of the merchant's menu.

    - `path`: its page, below /merchant, such as "/bills". `name`: its translated name.
    - `drawn`: the `d` attribute of its icon's SVG path.
    - `is_tab`: True if it is a tab on a phone. Other items are on the page *More*.
    - `new_path`, `new_name`: the page on which one can be created, if there is such a page.
    - `waiting`: the number of rows that need the merchant's attention.
    """

    path: str
    name: str
    drawn: str
    is_tab: bool = False
    new_path: str = ""
    new_name: str = ""
    waiting: int = 0


class MenuItemOf(Protocol):
    def __call__(self) -> MenuItem:
        """Returns the part's menu item in the language of the request."""


class TodayLines(Protocol):
    def __call__(self, counts: Mapping[str, int]) -> list[Line]:
        """Returns sentences for the page *Today*.

        `counts` has the result of each query in `today_counts`, by the query's name.
        """


class InboxLines(Protocol):
    def __call__(self, visit: Visit) -> list[Line]:
        """Returns sentences to show above the list of items that need attention."""


class MonthLines(Protocol):
    def __call__(self, visit: Visit, since_ms: int, before_ms: int) -> list[Line]:
        """Returns sentences for the page *Month*.

        They are about since_ms <= time < before_ms, in unix milliseconds.
        """


class SaleNote(Protocol):
    def __call__(self, state: str) -> str:
        """Returns a few words about a sale in this state, such as "Sent back"."""


class InvoiceCard(Protocol):
    def __call__(
        self, visit: Visit, row: InvoiceWith, came_sats: int
    ) -> tuple[str, dict[str, Any]] | None:
        """Returns a card on an invoice's page (template, values); None for no card.

        `came_sats` is the sum of the invoice's confirmed payments, in satoshis.
        """


@dataclass(frozen=True, kw_only=True)
class MerchantViews(Hook):
    """Merchant pages. Called by the part `merchant_pages`, if it is installed.

    `views` is called when the service starts.

    `inbox`, `today_counts` and `sale_state` are queries that `merchant_pages` embeds in
    its own SQL statements, when it is imported. The first two refer to the `Merchant`
    of the outer query, `sale_state` to its `Invoice`.

    - `inbox` selects the ids of items that need the merchant's attention, on every page. For
      an item about an invoice, the id is the invoice's id. Their number is also shown on the
      part's menu item.
    - `today_counts` select one number each. Their names must be unique among all parts. Their
      parameters `now` and `until` are the current time and the time a week later.
    - `sale_state` selects one word about the invoice, or nothing. `sale_note` is the text for
      this word in the list of sales.
    """

    module = "merchant_views"
    views: ViewsOf
    menu_item: MenuItemOf | None = None
    inbox: Select | None = None
    inbox_lines: InboxLines | None = None
    today_counts: Mapping[str, Select] = field(default_factory=dict)
    today_lines: TodayLines | None = None
    month_lines: MonthLines | None = None
    invoice_card: InvoiceCard | None = None
    sale_state: Select | None = None
    sale_note: SaleNote | None = None


class PlugInShop(Protocol):
    """The shop whose API key the request has.

    A view gets it as its first argument after the service.
    """

    @property
    def id(self) -> str: ...
    @property
    def merchant_id(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class PlugInOperations(Hook):
    """API operations for shop plug-ins. Read by the part `greenfield` at import.

    If `greenfield` is not installed, nothing reads this hook. `operations` has the
    required permission and the view function of each operation, by its method and path.
    `rows` has the query that loads a row whose id is in a path, by the id's prefix.
    """

    module = "shop_views"
    operations: Mapping[tuple[str, str], tuple[str, Callable[..., Any]]]
    rows: Mapping[str, Typed[Any]]


# Blocks and the check (the cron run that reads them)


class OpenPool(Protocol):
    def __call__(
        self, settings: Settings, db: Database, now: Callable[[], datetime]
    ) -> Pool[BlockSource] | None:
        """Opens the sources of headers and blocks for one run; None if none are set."""


class OpenListener(Protocol):
    def __call__(
        self, settings: Settings, db: Database, now: Callable[[], datetime]
    ) -> Listener | None:
        """Opens the listener for announced transactions between two runs of the check.

        Returns None if no configured source announces transactions.
        """


@dataclass(frozen=True, kw_only=True)
class Sources(Hook):
    """Sources of blocks. Called by `chain/pool.py` and `check/announcements.py`.

    The callers use the first part that returns a result other than None.
    """

    module = "source"
    open_pool: OpenPool
    open_listener: OpenListener


class Matches(Protocol):
    def __call__(self, db: Database, height: int, block: ProvenBlock) -> Any:
        """Returns the data that the part needs from the block at this height; empty if none.

        It is called outside a transaction. The result is only passed to
        `connect_block`, so the part chooses its type.
        """


class ConnectBlock(Protocol):
    def __call__(
        self,
        db: Database,
        settings: Settings,
        height: int,
        block: ProvenBlock,
        matches: Any,
        prices: Mapping[str, Decimal],
        now: datetime,
    ) -> None:
        """Stores the consequences of the block for the part.

        `matches` is the result of `Matches`. `prices` are the prices of one bitcoin by
        currency, empty if the block is old.
        """


class DisconnectBlocks(Protocol):
    def __call__(
        self, db: Database, settings: Settings, height: int, now: datetime
    ) -> None:
        """Undoes the part's changes from blocks above `height`.

        These blocks have left the best chain.
        """


class KeepBlocks(Protocol):
    def __call__(self, db: Database, height: int) -> None:
        """Marks rows that depend on blocks as permanent, before the stored chain is deleted.

        It stores `height` as their block's height, so that no reorganisation undoes
        them.
        """


class NeedsBlocks(Protocol):
    def __call__(self, db: Database) -> bool:
        """True while the part waits for blocks.

        If neither the core nor any part waits for blocks, the check reads none.
        """


class FirstNeededMs(Protocol):
    def __call__(self, db: Database) -> int | None:
        """Returns the time in unix milliseconds from which the part needs blocks.

        None means that it needs none yet.
        """


@dataclass(frozen=True, kw_only=True)
class Blocks(Hook):
    """The functions with which a part (an optional plug-in) reads blocks.

    `check/parts.py` calls them for each block and each reorganisation: `matches` before
    the block is stored, `connect_block` and `disconnect_blocks` after the core has
    committed its own changes, in a database transaction for each part. If that
    transaction fails, it is retried later.
    `chain/progress.py` calls `needs_blocks` and `first_needed_ms`.
    """

    module = "blocks"
    matches: Matches
    connect_block: ConnectBlock
    disconnect_blocks: DisconnectBlocks
    keep_blocks: KeepBlocks
    needs_blocks: NeedsBlocks
    first_needed_ms: FirstNeededMs


class RelatedIds(Protocol):
    def __call__(self, db: Database, rows: Iterable[Invoice]) -> set[str]:
        """Returns the ids of other invoices that may need attention because these rows changed."""


class Recount(Protocol):
    def __call__(self, db: Database, row: Invoice, now: datetime) -> int:
        """Counts the total again that the invoice is a part of, for example that of a bill.

        Returns the satoshis that the invoice received beyond that total.
        """


@dataclass(frozen=True, kw_only=True)
class InvoiceSums(Hook):
    """Totals over invoices. Called by `invoices/attention.py`.

    Its functions are called whenever the received amount of an invoice changes.
    """

    module = "money"
    related_ids: RelatedIds
    recount: Recount


class OnCheck(Protocol):
    def __call__(self, db: Database, settings: Settings, now: datetime) -> None:
        """Does the work that is due at `now`.

        It must do each item once, even if several processes run at the same time.
        """


@dataclass(frozen=True, kw_only=True)
class AfterCheck(Hook):
    """Scheduled work. Called by `check/parts.py` at the end of a run of the check.

    It is called only if the block sources confirm the system clock.
    """

    module = "after_check"
    on_check: OnCheck


# Notifications


@dataclass(frozen=True, kw_only=True)
class EventKinds(Hook):
    """The part's resource and its event types. Read by `notify/events.py` at import."""

    module = "kinds"
    resource: PartResource[Any]


@dataclass(frozen=True, kw_only=True)
class Transports(Hook):
    """A transport for notifications and its name.

    Read by `notify/transports.py` when it is imported.
    """

    module = "transport"
    name: str
    transport: Transport


class ComposeMail(Protocol):
    def __call__(
        self,
        db: Database,
        base_url: str,
        about: str,
        language: str,
        zone: tzinfo,
        now: datetime,
    ) -> tuple[str, MailText] | None:
        """Returns the recipient's address and the mail's text; None if the mail is out of date.

        `about` identifies the row that the mail is about.
        """


@dataclass(frozen=True, kw_only=True)
class Mails(Hook):
    """Mails of the part. Called by `notify/mail/compose.py`.

    `name` is the transport of the receivers that get these mails. `of_clock` is True if
    they are due by the clock, without an event: `notify/outbox.py` keeps them while the
    clock is not trusted.
    """

    module = "mail"
    name: str
    compose: ComposeMail
    of_clock: bool = False


# Files


class ExportRecords(Protocol):
    def __call__(
        self, db: Database, merchant: Merchant, from_ms: int, before_ms: int, page: int
    ) -> Iterator[Row]:
        """Yields records for the payments file, oldest first.

        Each has the COLUMNS of `exports/payments.py`, and from_ms <= `received_at` <
        before_ms, in unix milliseconds. `page` is the number of rows that are loaded at
        a time.
        """


class WalletLabels(Protocol):
    def __call__(self, db: Database, merchant: Merchant) -> Iterator[Row]:
        """Yields labels for the merchant's wallet (BIP329).

        They follow the labels of invoices.
        """


@dataclass(frozen=True, kw_only=True)
class Exports(Hook):
    """Exported records.

    Called by `exports/payments.py` and `exports/labels.py` for each file.
    """

    module = "exports"
    records: ExportRecords
    labels: WalletLabels


# The command line


@dataclass(frozen=True, kw_only=True)
class Commands(Hook):
    """Commands and groups of the command line, by name. Read by `cli/main.py`."""

    module = "commands"
    commands: Mapping[str, click.Command]


class IssueKey(Protocol):
    def __call__(
        self,
        db: Database,
        settings: Settings,
        merchant_id: int,
        now: datetime,
        scope: str | None,
        options: Mapping[str, str | None],
    ) -> tuple[IssuedKey, dict[str, str], list[str]] | None:
        """Issues an API key; None if no option of this part was given.

        Otherwise returns the key, the lines to print above its secret, and hints for
        the user. `scope` is the value of --scope; None if it was not given.
        """


@dataclass(frozen=True, kw_only=True)
class ApiKeys(Hook):
    """Kinds of API keys. Called by `cli/merchant/access.py` for `key issue`.

    `options` are added to the options of that command.
    """

    module = "keys"
    options: Sequence[click.Option]
    issue: IssueKey


class FindingsOf(Protocol):
    def __call__(
        self, settings: Settings, db: Database, now: datetime
    ) -> Iterable[Finding]:
        """Returns the part's results for the health check `blocktill doctor`."""


@dataclass(frozen=True, kw_only=True)
class Findings(Hook):
    """Results for `blocktill doctor`. Called by `health/doctor/run.py`."""

    module = "findings"
    findings: FindingsOf


# Loading

BY_MODULE = {kind.module: kind for kind in Hook.__subclasses__()}
H = TypeVar("H", bound=Hook)


@cache
def parts() -> dict[str, tuple[type[Hook], ...]]:
    """Returns the hook classes of each part, by the part's name. Raises HookError."""
    names = sorted(file.parent.name for file in PARTS_FOLDER.glob("*/__init__.py"))
    return {name: _hooks_of(name) for name in names}


def _hooks_of(part: str) -> tuple[type[Hook], ...]:
    kinds = getattr(import_module(f"btcpay.parts.{part}"), "HOOKS", None)
    if not isinstance(kinds, tuple):
        raise HookError(f"the part {part} has no HOOKS in its __init__.py")
    modules = {file.stem for file in (PARTS_FOLDER / part).glob("*.py")}
    for kind in kinds:
        if kind.module not in modules:
            raise HookError(
                f"the part {part} lists {kind.__name__}, but has no {kind.module}.py"
            )
    for module in sorted(modules & BY_MODULE.keys()):
        if BY_MODULE[module] not in kinds:
            raise HookError(
                f"{module}.py of the part {part} is a hook that its HOOKS do not list"
            )
    return kinds


def of(kind: type[H]) -> list[H]:
    """Returns the `HOOK` instances of this class, ordered by their parts' names.

    Raises HookError.
    """
    return list(by_part(kind).values())


def by_part(kind: type[H]) -> dict[str, H]:
    """Returns the `HOOK` instances of this class, by part name. Raises HookError."""
    return {
        part: _load_hook(part, kind) for part, kinds in parts().items() if kind in kinds
    }


def _load_hook(part: str, kind: type[H]) -> H:
    module = import_module(f"btcpay.parts.{part}.{kind.module}")
    hook = getattr(module, "HOOK", None)
    if not isinstance(hook, kind):
        raise HookError(
            f"{kind.module}.py of the part {part} does not end with"
            f" HOOK = hooks.{kind.__name__}(...)"
        )
    return hook
