"""The hooks by which parts (optional plug-ins) join the core, which runs without them.

A part is a folder in btcpay/parts/. Its `__init__.py` lists the hook classes that the
part implements, in `HOOKS`. Each hook class names a module of the part. That module
ends with an instance of the class:

    HOOK = hooks.AfterCheck(on_check=on_check)

mypy compares each function in the instance with the protocol in this module, including
the names of its arguments. A module of a part is imported when its hook is first
needed. So the check, the cron job that reads the blockchain, imports no web pages.
Parts are called in alphabetical order of their names.
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

    A hook's module or its `HOOK` is missing, or `HOOKS` does not list the hook.
    """


@dataclass(frozen=True, kw_only=True)
class Hook:
    """The base class of the hooks.

    `module` is the name of the module, in the part's folder, that ends with `HOOK`.
    """

    module: ClassVar[str]


# Pages


class MakeBlueprint(Protocol):
    def __call__(self, service: Service) -> Blueprint | None:
        """Returns the part's Flask blueprint; None if the settings disable the part."""


class FrontPageLink(Protocol):
    def __call__(self, settings: Settings) -> tuple[str, str] | None:
        """Returns a link for the page `/`; None if the settings disable the part.

        The first text is the link's path without the leading slash. The second is the
        text to show, in the language of the request.
        """


@dataclass(frozen=True, kw_only=True)
class Pages(Hook):
    """Adds web pages and API operations. `app.py` calls `blueprint` when the service starts.

    `checkout/views.py` calls `front_page_link` for each visit of `/`.
    """

    module = "blueprint"
    blueprint: MakeBlueprint
    front_page_link: FrontPageLink | None = None


class RequestLog(Protocol):
    """A log of API requests, in one process of the service."""

    def note(
        self,
        key_id: str,
        operation: str,
        status: int,
        error_code: str,
        took_s: float,
    ) -> None:
        """Adds a request that is being answered. Must return within microseconds.

        `operation` is the operation's id, or `none` for a path without one. `status` is
        the HTTP status. `error_code` is the code in the error's response, or "".
        """

    def close(self) -> None:
        """Stops the log's thread. No request is noted afterwards."""


class OpenLog(Protocol):
    def __call__(
        self, settings: Settings, db: Database, now: Callable[[], datetime]
    ) -> RequestLog | None:
        """Returns the part's log for this process; None if the settings disable it.

        It is called before the server forks its processes, so it must start no thread.
        """


@dataclass(frozen=True, kw_only=True)
class RequestLogs(Hook):
    """Lets a part see each API request that has a valid key.

    `web/service.py` calls `open_log` when the service starts, and closes the log at its
    end. `web/access_log.py` calls the log's `note` when the response to such a request
    begins.
    """

    module = "request_log"
    open_log: OpenLog


class FrameOf(Protocol):
    def __call__(self, db: Database, invoice: Invoice) -> dict[str, Any] | None:
        """Returns the site that may show the invoice's page in a frame; None if no site may.

        In the dictionary, `origin` is the origin of the site. `leads_back` is True if
        the page returns the visitor to that site automatically.
        """


@dataclass(frozen=True, kw_only=True)
class InvoiceFrame(Hook):
    """Lets a site show invoice pages in a frame.

    `checkout/views.py` calls `frame_of` for each invoice page.
    """

    module = "frame"
    frame_of: FrameOf


class ReceiptLine(NamedTuple):
    """A line of a receipt: its label, its value, and the value's CSS class."""

    term: str
    text: str
    css_class: str


class ReceiptLines(Protocol):
    def __call__(self, db: Database, invoice_id: str) -> Iterable[ReceiptLine]:
        """Returns the part's receipt lines for a paid invoice, in the language of the request."""


class ReturnedSats(Protocol):
    def __call__(self, db: Database, invoice_id: str) -> int:
        """Returns the satoshis of this invoice that were sent back to the payer."""


@dataclass(frozen=True, kw_only=True)
class Receipts(Hook):
    """Adds lines to receipts, and returns the refunded sum. Called by `checkout/notices.py`.

    The lines are on the receipt's page only. The receipt that is mailed
    (`notify/mail/receipt.py`) has none of them.
    `receipt_lines` is called for each page of a paid invoice. `returned_sats` is called
    for each page and each status request of an invoice that has ended or is overpaid.
    """

    module = "receipt"
    receipt_lines: ReceiptLines
    returned_sats: ReturnedSats


class ViewsOf(Protocol):
    def __call__(
        self, settings: Settings
    ) -> list[tuple[str, str, Callable[..., Response]]]:
        """Returns the method, path and view function of each of the part's merchant pages."""


@dataclass(frozen=True)
class MenuItem:
    """An item of the merchant's menu.

    - `path`: the path of its page, below /merchant, such as "/bills".
    - `name`: its name, in the language of the request.
    - `drawn`: the `d` attribute of its icon's SVG path.
    - `is_tab`: True if it is a tab on a phone. Other items are on the page *More*.
    - `new_path`, `new_name`: the path and name of the page that creates a new object,
      such as a bill; "" if there is no such page.
    - `waiting`: the number of objects that need the merchant's attention.
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

        `counts` has the number that each query of `today_counts` returned, by the
        query's name.
        """


class InboxLines(Protocol):
    def __call__(self, visit: Visit) -> list[Line]:
        """Returns sentences to show above the list on the page *Needs attention*."""


class MonthLines(Protocol):
    def __call__(self, visit: Visit, since_ms: int, before_ms: int) -> list[Line]:
        """Returns sentences for the page *Month*.

        The sentences are about events with since_ms <= time < before_ms, in unix
        milliseconds.
        """


class SaleNote(Protocol):
    def __call__(self, state: str) -> str:
        """Returns a short note on a sale, such as "Refunded".

        `state` is the word that the query `sale_state` returned for the sale's invoice.
        """


class InvoiceCard(Protocol):
    def __call__(
        self, visit: Visit, row: InvoiceWith, came_sats: int
    ) -> tuple[str, dict[str, Any]] | None:
        """Returns a card for the merchant's page of an invoice; None to add none.

        A card is the name of a template, and the values for it. `came_sats` is the sum
        of the invoice's confirmed payments, in satoshis.
        """


@dataclass(frozen=True, kw_only=True)
class MerchantViews(Hook):
    """The functions with which a part (an optional plug-in) adds pages for the merchant.

    Only the part `merchant_pages` calls them, if it is installed. It calls `views` when
    the service starts.

    `inbox`, `today_counts` and `sale_state` are queries. When `merchant_pages` is
    imported, it embeds them in its own SQL statements. The first two refer to the
    `Merchant` of the outer query, `sale_state` refers to the outer query's `Invoice`.

    - `inbox` selects an id for each thing that needs the merchant's attention. If the
      thing is about an invoice, this is the invoice's id. The number of these ids is
      shown on every page, and on the menu item of the part that has the query.
    - `today_counts` select one number each. Their names must be unique among all parts.
      Their parameters `now` and `until` are the current time and the time a week later.
    - `sale_state` selects one word about the invoice, or nothing. `sale_note` returns
      the text that the list of sales shows for this word.
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
    """The shop to which the API key of a request belongs.

    A view of a plug-in's operation gets the service as its first argument, and this
    shop as its second.
    """

    @property
    def id(self) -> str: ...
    @property
    def merchant_id(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class PlugInOperations(Hook):
    """Adds API operations for shop plug-ins, in the part `greenfield`.

    If `greenfield` is not installed, nothing uses this hook. `operations` maps the
    method and path of each operation to its required permission and its view function.
    `rows` is for paths that contain an id: it maps the prefix of an id to the query that
    loads the row with this id.
    """

    module = "shop_views"
    operations: Mapping[tuple[str, str], tuple[str, Callable[..., Any]]]
    rows: Mapping[str, Typed[Any]]


# Blocks and the check (the cron job that reads them)


class OpenPool(Protocol):
    def __call__(
        self, settings: Settings, db: Database, now: Callable[[], datetime]
    ) -> Pool[BlockSource] | None:
        """Opens the part's sources of headers and blocks for one run of the check.

        Returns None if the settings name no such source.
        """


class OpenListener(Protocol):
    def __call__(
        self, settings: Settings, db: Database, now: Callable[[], datetime]
    ) -> Listener | None:
        """Opens a listener that reports new transactions of the network between two checks.

        Returns None if no configured source announces transactions.
        """


@dataclass(frozen=True, kw_only=True)
class Sources(Hook):
    """Adds sources of blocks. Called by `chain/pool.py` and `check/announcements.py`.

    The callers ask the parts in order, and use the first result that is not None.
    """

    module = "source"
    open_pool: OpenPool
    open_listener: OpenListener


class Matches(Protocol):
    def __call__(self, db: Database, height: int, block: ProvenBlock) -> Any:
        """Returns the data that the part needs from the block at this height.

        An empty result means that the part needs nothing from this block. Only the
        part's `connect_block` gets the result, so the part chooses its type. The core
        calls this outside a database transaction.
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
        """Changes the part's rows by the block, for example if it pays a refund.

        `matches` is the result of the part's function `matches` for this block.
        `prices` has the price of one bitcoin in each currency; it is empty if the block
        is old.
        """


class DisconnectBlocks(Protocol):
    def __call__(
        self, db: Database, settings: Settings, height: int, now: datetime
    ) -> None:
        """Undoes the changes that the blocks above `height` caused in the part's rows.

        A reorganisation has removed these blocks from the best chain.
        """


class KeepBlocks(Protocol):
    def __call__(self, db: Database, height: int) -> None:
        """Makes the changes of earlier blocks permanent, before the stored chain is deleted.

        The part stores `height` as the block height in its rows. No reorganisation
        reaches this height, so none undoes the changes.
        """


class NeedsBlocks(Protocol):
    def __call__(self, db: Database) -> bool:
        """Returns True while the part waits for data in blocks.

        If neither the core nor any part waits for blocks, the check downloads no
        blocks.
        """


class FirstNeededMs(Protocol):
    def __call__(self, db: Database) -> int | None:
        """Returns the time from which the part needs blocks, in unix milliseconds.

        None means that the part needs no blocks yet.
        """


@dataclass(frozen=True, kw_only=True)
class Blocks(Hook):
    """Lets a part (an optional plug-in) store what blocks contain.

    `check/parts.py` calls `matches` for each new block, before the block is stored. The
    core then commits its own changes for the new block, or for a reorganisation. After
    that `check/parts.py` calls `connect_block` or `disconnect_blocks`, in a separate
    database transaction for each part. If that transaction fails, it is retried later.

    `check/undo.py` calls `keep_blocks`, and `chain/progress.py` calls `needs_blocks` and
    `first_needed_ms`.
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
        """Returns the ids of other invoices whose need for attention may have changed.

        `rows` are the invoices that have changed.
        """


class Recount(Protocol):
    def __call__(self, db: Database, row: Invoice, now: datetime) -> int:
        """Computes anew the total to which the invoice belongs, such as that of a bill.

        Returns the satoshis of this invoice that exceed the total; 0 if the invoice
        belongs to no total.
        """


@dataclass(frozen=True, kw_only=True)
class InvoiceSums(Hook):
    """Keeps totals over several invoices. Called by `invoices/attention.py`.

    Both functions are called when the sum that an invoice has received changes.
    """

    module = "money"
    related_ids: RelatedIds
    recount: Recount


class OnCheck(Protocol):
    def __call__(self, db: Database, settings: Settings, now: datetime) -> None:
        """Does the part's work that is due at `now`.

        It must do each piece of work only once, even if several processes run at the
        same time.
        """


@dataclass(frozen=True, kw_only=True)
class AfterCheck(Hook):
    """Runs scheduled work. `check/parts.py` calls `on_check` at the end of each check.

    It is called only if the block sources confirm the system clock.
    """

    module = "after_check"
    on_check: OnCheck


# Notifications


@dataclass(frozen=True, kw_only=True)
class EventKinds(Hook):
    """Registers a resource of the part, with its event types. Read by `notify/events.py`."""

    module = "kinds"
    resource: PartResource[Any]


@dataclass(frozen=True, kw_only=True)
class Transports(Hook):
    """Adds a transport for notifications, and its name. Read by `notify/transports.py`."""

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
        """Returns the recipient's address and the text of a mail that is about to be sent.

        Returns None if the mail need not be sent any more. `about` identifies the
        database row that the mail is about.
        """


@dataclass(frozen=True, kw_only=True)
class Mails(Hook):
    """Composes mails of the part. Called by `notify/mail/compose.py`.

    `name` is the name of the transport whose receivers get these mails. `of_clock` is
    True if the mails are due at a certain time, not after an event. Then
    `notify/outbox.py` keeps them back while the system clock is not trusted.
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
        """Yields the part's records for the payments file, oldest first.

        Each record has the COLUMNS of `exports/payments.py`. Its `received_at` is in
        the span from_ms <= time < before_ms, in unix milliseconds. `page` is the number
        of rows that one query loads.
        """


class WalletLabels(Protocol):
    def __call__(self, db: Database, merchant: Merchant) -> Iterator[Row]:
        """Yields labels for the merchant's wallet (BIP329).

        In the file of labels, they follow the labels of invoices.
        """


@dataclass(frozen=True, kw_only=True)
class Exports(Hook):
    """Adds records to the files for bookkeeping and for wallets.

    `exports/payments.py` calls `records`, and `exports/labels.py` calls `labels`, for
    each file.
    """

    module = "exports"
    records: ExportRecords
    labels: WalletLabels


# The command line


@dataclass(frozen=True, kw_only=True)
class Commands(Hook):
    """Adds commands and command groups, by name. `cli/main.py` loads them."""

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
        """Issues an API key; returns None if the user gave none of this part's options.

        Otherwise returns the key, the named values to print above the key's secret, and
        hints for the user. `scope` is the value of --scope; None if it was not given.
        """


@dataclass(frozen=True, kw_only=True)
class ApiKeys(Hook):
    """The functions with which a part (an optional plug-in) adds a kind of API key.

    `cli/merchant/access.py` calls them for the command `key issue`. `options` are added
    to the options of that command.
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
    """Adds results to `blocktill doctor`. Called by `health/doctor/run.py`."""

    module = "findings"
    findings: FindingsOf


# Loading

BY_MODULE = {kind.module: kind for kind in Hook.__subclasses__()}
H = TypeVar("H", bound=Hook)


@cache
def parts() -> dict[str, tuple[type[Hook], ...]]:
    """Returns the hook classes of each installed part, by the part's name.

    Raises HookError if a part's modules do not match its `HOOKS`.
    """
    names = sorted(file.parent.name for file in PARTS_FOLDER.glob("*/__init__.py"))
    return {name: _hooks_of(name) for name in names}


def _hooks_of(part: str) -> tuple[type[Hook], ...]:
    """Returns the hook classes that the part lists in its `HOOKS`.

    Raises HookError unless the part has a module for each of them, and no module of
    another hook.
    """
    hook_classes = getattr(import_module(f"btcpay.parts.{part}"), "HOOKS", None)
    if not isinstance(hook_classes, tuple):
        raise HookError(f"the part {part} has no HOOKS in its __init__.py")
    modules = {file.stem for file in (PARTS_FOLDER / part).glob("*.py")}
    for hook_class in hook_classes:
        if hook_class.module not in modules:
            raise HookError(
                f"the part {part} lists {hook_class.__name__}, but has no"
                f" {hook_class.module}.py"
            )
    for module in sorted(modules & BY_MODULE.keys()):
        if BY_MODULE[module] not in hook_classes:
            raise HookError(
                f"{module}.py of the part {part} is a hook that its HOOKS do not list"
            )
    return hook_classes


def of(kind: type[H]) -> list[H]:
    """Returns each part's instance of this hook class, ordered by the parts' names.

    Raises HookError if a part's modules do not match its `HOOKS`.
    """
    return list(by_part(kind).values())


def by_part(kind: type[H]) -> dict[str, H]:
    """Returns each part's instance of this hook class, by the part's name.

    Raises HookError if a part's modules do not match its `HOOKS`.
    """
    instances = {}
    for part, hook_classes in parts().items():
        if kind in hook_classes:
            instances[part] = _load_hook(part, kind)
    return instances


def _load_hook(part: str, kind: type[H]) -> H:
    """Returns the `HOOK` of the part's module for this hook class.

    Raises HookError if the module has no such `HOOK`.
    """
    module = import_module(f"btcpay.parts.{part}.{kind.module}")
    hook = getattr(module, "HOOK", None)
    if not isinstance(hook, kind):
        raise HookError(
            f"{kind.module}.py of the part {part} does not end with"
            f" HOOK = hooks.{kind.__name__}(...)"
        )
    return hook
