"""Every hook by which an optional part joins the core: its types, its caller and the moment.

A part is a folder of btcpay/parts/, whose `__init__` lists the part's hooks (`HOOKS`). Each hook
below names a module of the part, which ends with the hook filled in:

    HOOK = hooks.AfterCheck(on_check=on_check)

mypy compares each function there with its type on this page, including the names of its arguments.
A part's module is imported when its hook is first needed, so that the check loads no web pages.
Parts come in the order of their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

# For the types alone: this module imports nothing else of the project.
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
    from btcpay.notify.mail.message import MailText
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
    """A part does not fit this page: a module or hook is misspelt, missing or not listed."""


@dataclass(frozen=True, kw_only=True)
class Hook:
    """A hook of a part. `module`: the name of the part's module that ends with it, filled in."""

    module: ClassVar[str]


# Pages


class MakeBlueprint(Protocol):
    def __call__(self, service: Service) -> Blueprint | None:
        """The part's pages and operations; None if the settings turn it off."""


@dataclass(frozen=True, kw_only=True)
class Pages(Hook):
    """Asked by `app.py`, when the service starts."""

    module = "blueprint"
    blueprint: MakeBlueprint


class FrameOf(Protocol):
    def __call__(self, db: Database, invoice: Invoice) -> dict[str, Any] | None:
        """`origin`: the site that may show the invoice's page in a frame; None if no site may.

        `leads_back`: True if the page goes back to that site by itself.
        """


@dataclass(frozen=True, kw_only=True)
class InvoiceFrame(Hook):
    """Asked by `checkout/views.py`, for each invoice's page."""

    module = "frame"
    frame_of: FrameOf


class ReceiptLine(NamedTuple):
    """A line of a receipt: its term, what the term stands for, and the text's class in the page."""

    term: str
    text: str
    css_class: str


class ReceiptLines(Protocol):
    def __call__(self, db: Database, invoice_id: str) -> Iterable[ReceiptLine]:
        """The part's lines of a paid invoice's receipt, in the language of the request."""


@dataclass(frozen=True, kw_only=True)
class Receipts(Hook):
    """Asked by `checkout/snapshot.py`, for the page of a paid invoice."""

    module = "receipt"
    receipt_lines: ReceiptLines


class ViewsOf(Protocol):
    def __call__(
        self, settings: Settings
    ) -> list[tuple[str, str, Callable[..., Response]]]:
        """The method, the path and the view of each of the part's pages."""


class MenuEntry(Protocol):
    def __call__(self) -> dict[str, Any]:
        """The entry's `path` and `name`, and in `drawn` the SVG path of its icon."""


class TodayLines(Protocol):
    def __call__(self, counts: Mapping[str, int]) -> list[Line]:
        """Sentences on *Today*; `counts` are the numbers that `today_counts` has found."""


class InboxLines(Protocol):
    def __call__(self, visit: Visit) -> list[Line]:
        """Sentences above the list of what needs the merchant's attention."""


class MonthLines(Protocol):
    def __call__(self, visit: Visit, since_ms: int, before_ms: int) -> list[Line]:
        """Sentences on *Month*, about since_ms <= time < before_ms."""


class InvoiceCard(Protocol):
    def __call__(
        self, visit: Visit, row: InvoiceWith, came_sats: int
    ) -> tuple[str, dict[str, Any]] | None:
        """The template and the values of a card on an invoice's page; None for no card.

        `came_sats`: the sum of its confirmed payments.
        """


@dataclass(frozen=True, kw_only=True)
class MerchantViews(Hook):
    """Asked by the part `merchant_pages`, if there is one; `views` when the service starts.

    That part puts the queries into its own statements when it is imported; they are about the
    `Merchant` of the outer query. `inbox`: the ids of what waits for the merchant, for every page;
    the id is the invoice's if it is about one. `today_counts`: queries of one number each, by names
    that no other part has; their parameters `now` and `until` are the present and a week from now.
    """

    module = "merchant_views"
    views: ViewsOf
    menu_entry: MenuEntry | None = None
    inbox: Select | None = None
    inbox_lines: InboxLines | None = None
    today_counts: Mapping[str, Select] = field(default_factory=dict)
    today_lines: TodayLines | None = None
    month_lines: MonthLines | None = None
    invoice_card: InvoiceCard | None = None


class PlugInShop(Protocol):
    """The first argument of a view, after the service: the shop whose key asks."""

    @property
    def id(self) -> str: ...
    @property
    def merchant_id(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class PlugInOperations(Hook):
    """Asked by the part `greenfield`, if there is one, when it is imported.

    `operations`: the permission that is needed and the view, by method and path. `rows`: the query
    for the row whose id is in a path, by the id's prefix.
    """

    module = "shop_views"
    operations: Mapping[tuple[str, str], tuple[str, Callable[..., Any]]]
    rows: Mapping[str, Typed[Any]]


# The chain and its check


class OpenPool(Protocol):
    def __call__(
        self, settings: Settings, db: Database, now: Callable[[], datetime]
    ) -> Pool[BlockSource] | None:
        """The sources of headers and blocks for one run; None if none are set."""


class OpenListener(Protocol):
    def __call__(
        self, settings: Settings, db: Database, now: Callable[[], datetime]
    ) -> Listener | None:
        """The listener for announcements between two runs; None if no source announces any."""


@dataclass(frozen=True, kw_only=True)
class Sources(Hook):
    """Asked by `chain/pool.py` and `check/announcements.py`, which take the first part's answer."""

    module = "source"
    open_pool: OpenPool
    open_listener: OpenListener


class Matches(Protocol):
    def __call__(self, db: Database, height: int, block: ProvenBlock) -> Any:
        """Whatever in the block at this height concerns the part; empty if nothing does.

        No transaction is open.
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
        """Stores the `matches`. `prices`, by currency, are empty if the block is old."""


class DisconnectBlocks(Protocol):
    def __call__(
        self, db: Database, settings: Settings, height: int, now: datetime
    ) -> None:
        """Undoes the consequences of blocks above `height`, which leave the chain."""


class KeepBlocks(Protocol):
    def __call__(self, db: Database, height: int) -> None:
        """If the chain is given up: gives `height` to the rows that must not be undone."""


class NeedsBlocks(Protocol):
    def __call__(self, db: Database) -> bool:
        """True while the part waits for blocks. If nobody does, the check reads none."""


class FirstNeededMs(Protocol):
    def __call__(self, db: Database) -> int | None:
        """When the part first had something that blocks may concern; None before that."""


@dataclass(frozen=True, kw_only=True)
class Blocks(Hook):
    """Asked by `check/parts.py` for each block and each reorganisation.

    `matches` is called before the block is stored. The block is connected or disconnected
    afterwards, in a transaction of the part's own, and again by itself if that fails.
    `chain/progress.py` asks whether blocks are needed at all, and since when.
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
        """Ids of further invoices whose attention may change with these."""


class Recount(Protocol):
    def __call__(self, db: Database, row: Invoice, now: datetime) -> int:
        """Counts again the sum of which the invoice is a part; returns satoshis beyond it."""


@dataclass(frozen=True, kw_only=True)
class InvoiceSums(Hook):
    """Asked by `invoices/attention.py` whenever what an invoice received changes."""

    module = "money"
    related_ids: RelatedIds
    recount: Recount


class OnCheck(Protocol):
    def __call__(self, db: Database, settings: Settings, now: datetime) -> None:
        """Does the work that is due by now; each piece happens once, whatever runs beside it."""


@dataclass(frozen=True, kw_only=True)
class AfterCheck(Hook):
    """Asked by `check/parts.py`, at the end of a run, if the sources confirm the clock."""

    module = "after_check"
    on_check: OnCheck


# Notifications


@dataclass(frozen=True, kw_only=True)
class EventKinds(Hook):
    """Asked by `notify/events.py`, when it is imported: the part's resource with its events."""

    module = "kinds"
    resource: PartResource[Any]


@dataclass(frozen=True, kw_only=True)
class Transports(Hook):
    """Asked by `notify/transports.py`, when it is imported: a way to notify, and its name."""

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
        """The address and the text of the mail that this is `about`; None if it is outdated."""


@dataclass(frozen=True, kw_only=True)
class Mails(Hook):
    """Asked by `notify/mail/compose.py`; `name` is that of the receivers' transport."""

    module = "mail"
    name: str
    compose: ComposeMail


# Files


class ExportRecords(Protocol):
    def __call__(
        self, db: Database, merchant: Merchant, from_ms: int, before_ms: int, page: int
    ) -> Iterator[Row]:
        """Records of the file of payments, oldest first, by `exports/payments.COLUMNS`.

        They are about from_ms <= `received_at` < before_ms. `page`: how many rows are read at once.
        """


class WalletLabels(Protocol):
    def __call__(self, db: Database, merchant: Merchant) -> Iterator[Row]:
        """Labels for the merchant's wallet (BIP329), after those of invoices."""


@dataclass(frozen=True, kw_only=True)
class Exports(Hook):
    """Asked by `exports/payments.py` and `exports/labels.py`, for each file."""

    module = "exports"
    records: ExportRecords
    labels: WalletLabels


# The command line


@dataclass(frozen=True, kw_only=True)
class Commands(Hook):
    """Asked by `cli/main.py`: commands and groups of the command line, by their names."""

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
        """The key, lines to print above its secret, and hints; None if no option asks for one."""


@dataclass(frozen=True, kw_only=True)
class ApiKeys(Hook):
    """Asked by `cli/merchant/access.py`, for `key issue`, which gets these `options`."""

    module = "keys"
    options: Sequence[click.Option]
    issue: IssueKey


class FindingsOf(Protocol):
    def __call__(
        self, settings: Settings, db: Database, now: datetime
    ) -> Iterable[Finding]:
        """The part's findings for the doctor."""


@dataclass(frozen=True, kw_only=True)
class Findings(Hook):
    """Asked by `health/doctor/run.py`."""

    module = "findings"
    findings: FindingsOf


# Loading of the hooks

BY_MODULE = {kind.module: kind for kind in Hook.__subclasses__()}
H = TypeVar("H", bound=Hook)


@cache
def parts() -> dict[str, tuple[type[Hook], ...]]:
    """The hooks of each part, by the part's name. Raises HookError."""
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
    """This hook of each part that has it, in the order of the parts' names. Raises HookError."""
    return list(by_part(kind).values())


def by_part(kind: type[H]) -> dict[str, H]:
    """This hook of each part that has it, by the part's name. Raises HookError."""
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
