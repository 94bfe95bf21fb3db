"""A model of money that goes back, written from the contract alone by one who never read the code.

Where the contract leaves the answer open, and the answer chosen here:

1. "A block that we did not have": a block's identity, not its height; all ids whose headers were
    ever known, read or not, lost branches too. Model(known_by="height") has the other reading:
    only blocks above the known tip count.
2. The same payment put back in a NEW block by a reorganisation after the address was given counts
    (follows from 1).
3. "Oldest": by the order in which refunds were made, not in which addresses came; never by clock
    or random id.
4. "The default never changes its meaning": its first successful use fixes it for the invoice
    ("excess" or "all"), also when that refund is canceled or what came changes; a said sum is no
    use.
5. Excess is only had by a paid invoice; an expired or canceled one (`ended`) is refunded "all
    that came".
6. "What came" is confirmed money everywhere. When it is undone, refunds made stay (ready, sent):
    the limit of twice is asked only when a refund is made. The same for `taken` and dust: asked
    only when an address is given.
7. `taken`: another merchant's refund "waits" only when it is ready. A sent one is no hindrance;
    when it is undone later both merchants wait at one address, and the oldest of both is sent
    first.
8. The same merchant may have many refunds to one address, with equal sums too; two given at
    different heights: the younger may be sent by a block that the older's address came too late
    for.
9. A canceled refund has no output, and nothing is shown for it; its money is free for another
    refund there. One that was sent, undone, canceled and whose block comes back stays canceled.
10. Shown ("was it this?") and to be said: only for a ready refund, outputs to its address in
    blocks not known when it was given, that send no refund (nor are said for one). Older outputs
    can be neither shown nor said.
11. A word names a block: when that leaves, the word is forgotten for good, also when block or
    transaction returns.
12. A word goes before the rule: its output and its refund are out of the search.
13. A sent refund whose output is undone may be sent by an output that sent a younger one before
    (all is decided again): the younger is then ready. The order inside the new blocks may
    exchange outputs between refunds.
14. One block is enough; a coinbase output counts like any other; confirmations are not asked.
15. Canceling a canceled, clearing a requested, giving where an address is: refused. Which reason
    is told when several are true, the text does not say: compare that it is refused, not why.
16. A refused step changes nothing: make() with a refused address makes no refund and uses no
    default.
17. Unread blocks do not exist here. The text does not say what cancel/clear do while a block that
    sends is unread.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter


@dataclass(frozen=True)
class Tx:
    """A transaction: its outputs (address, sats) in order; vout is the place in this list."""

    txid: str
    outs: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Block:
    """A block; a transaction's position is its place in this list."""

    id: str
    height: int
    txs: tuple[Tx, ...]


@dataclass(frozen=True, order=True)
class Output:
    """One output where it stands; sorted, these are in the chain's order."""

    height: int
    position: int
    vout: int
    block: str
    txid: str
    address: str
    sats: int


@dataclass
class Invoice:
    """What a merchant asked and what came (confirmed)."""

    merchant: str
    asked: int
    ended: bool = False  # expired or canceled: it never becomes paid
    came: int = 0
    # what the default sum means: "excess" or "all", once it was used
    basis: str | None = None

    @property
    def paid(self) -> bool:
        return not self.ended and self.came >= self.asked


@dataclass
class Refund:
    """One refund; whether it is sent is not kept but decided by sending()."""

    id: str
    merchant: str
    invoice: str | None
    sats: int
    made: int
    address: str | None = None
    known: frozenset[str] = (
        frozenset()
    )  # ids of the blocks known when the address was given
    known_height: int = -1
    canceled: bool = False
    # block, txid, vout: the merchant said that it was this
    word: tuple[str, str, int] | None = None


STATE = attrgetter(*(each.name for each in fields(Refund)))


@dataclass(frozen=True)
class Refusal:
    """A step that was refused, with one reason that is true."""

    reason: str


def outputs(chain: Iterable[Block]) -> list[Output]:
    """Every output of these blocks, in the chain's order, in whatever order the blocks are told."""
    return sorted(
        Output(b.height, p, v, b.id, t.txid, a, s)
        for b in chain
        for p, t in enumerate(b.txs)
        for v, (a, s) in enumerate(t.outs)
    )


def may_count(refund: Refund, out: Output, known_by: str) -> bool:
    """An output to the refund's address, in a block not known when the address was given."""
    new = (
        out.height > refund.known_height
        if known_by == "height"
        else out.block not in refund.known
    )
    return new and not refund.canceled and refund.address == out.address


def is_said(refund: Refund, out: Output, words_return: bool) -> bool:
    """The merchant has said that this output was the refund; in this block, unless words return."""
    if refund.canceled or refund.word is None:
        return False
    block, txid, vout = refund.word
    return (out.txid, out.vout) == (txid, vout) and (words_return or out.block == block)


def sending(
    refunds: Iterable[Refund],
    outs: Iterable[Output],
    known_by: str = "block",
    words_return: bool = False,
) -> dict[str, Output]:
    """Which output sends which refund, by its id: of all outputs of the present chain."""
    sent: dict[str, Output] = {}
    used: set[Output] = set()
    by_age = sorted(refunds, key=lambda r: r.made)
    in_order = sorted(outs)
    said = [refund for refund in by_age if refund.word]
    for refund in said:  # first the merchants' words
        for out in in_order:
            if is_said(refund, out, words_return):
                sent[refund.id] = out
                used.add(out)
    for out in in_order:  # then the rule
        for refund in by_age:
            fits = refund.sats == out.sats and may_count(refund, out, known_by)
            if fits and out not in used and refund.id not in sent:
                sent[refund.id] = out
                used.add(out)
    return sent


@dataclass
class Model:
    """All invoices and refunds of one chain. A step returns what it made, None, or a Refusal."""

    known_by: str = "block"
    # the other reading of 11: a word waits for its transaction
    words_return: bool = False
    dust: Callable[[str], int] = lambda address: 0
    chain: list[Block] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)  # every block id ever
    invoices: dict[str, Invoice] = field(default_factory=dict)
    refunds: dict[str, Refund] = field(default_factory=dict)
    # the answers of outputs() and sending(), beside what they are about
    _outs: tuple[list[Block], list[Output]] = ([], [])
    _sent: tuple[list[object], dict[str, Output]] = ([], {})

    def outs(self) -> list[Output]:
        """Every output of the present chain, computed again only when the chain has changed."""
        if self._outs[0] != self.chain:
            self._outs = (list(self.chain), outputs(self.chain))
        return self._outs[1]

    def sent(self) -> dict[str, Output]:
        """Computed again only when the chain or a refund has changed."""
        about = [*self.chain, *map(STATE, self.refunds.values())]
        if self._sent[0] != about:
            self._sent = (
                about,
                sending(
                    self.refunds.values(),
                    self.outs(),
                    self.known_by,
                    self.words_return,
                ),
            )
        return self._sent[1]

    def state(self, refund: str) -> str:
        r = self.refunds[refund]
        if r.canceled:
            return "canceled"
        if r.address is None:
            return "requested"
        return "sent" if refund in self.sent() else "ready"

    def shown(self, refund: str) -> list[Output]:
        """The outputs of which the merchant is asked "was it this?"."""
        if self.state(refund) != "ready":
            return []
        used = set(self.sent().values())
        r = self.refunds[refund]
        return [
            o for o in self.outs() if may_count(r, o, self.known_by) and o not in used
        ]

    def open(
        self, invoice: str, merchant: str, asked: int, ended: bool = False
    ) -> None:
        self.invoices[invoice] = Invoice(merchant, asked, ended)

    def come(self, invoice: str, sats: int) -> None:
        """A payment is confirmed (more than 0) or undone by a reorganisation (less than 0)."""
        self.invoices[invoice].came += sats

    def made_for(self, invoice: str) -> int:
        return sum(
            r.sats
            for r in self.refunds.values()
            if r.invoice == invoice and not r.canceled
        )

    def default(self, invoice: str) -> tuple[str, int]:
        """What an unsaid sum means for this invoice, and what of it is left."""
        i = self.invoices[invoice]
        excess = max(0, i.came - i.asked) if i.paid else 0
        basis = i.basis or ("excess" if excess else "all")
        return basis, (excess if basis == "excess" else i.came) - self.made_for(invoice)

    def bad_address(self, merchant: str, sats: int, address: str) -> Refusal | None:
        for r in self.refunds.values():
            if (
                r.merchant != merchant
                and r.address == address
                and self.state(r.id) == "ready"
            ):
                return Refusal("taken")
        return Refusal("dust") if sats < self.dust(address) else None

    def make(
        self,
        invoice: str | None,
        sats: int | None = None,
        address: str | None = None,
        merchant: str = "",
    ) -> Refund | Refusal:
        """Make a refund of an invoice, or (invoice None) of a merchant's own word."""
        basis: str | None = None
        if sats is None:
            if invoice is None:
                return Refusal("sum")
            basis, sats = self.default(invoice)
        if sats <= 0:
            return Refusal("sum")
        if invoice is not None:
            merchant = self.invoices[invoice].merchant
            if self.made_for(invoice) + sats > 2 * self.invoices[invoice].came:
                return Refusal("more")
        bad = self.bad_address(merchant, sats, address) if address is not None else None
        if bad:
            return bad
        if (
            invoice is not None
            and basis is not None
            and self.invoices[invoice].basis is None
        ):
            self.invoices[invoice].basis = basis
        refund = Refund(
            f"r{len(self.refunds)}", merchant, invoice, sats, len(self.refunds)
        )
        self.refunds[refund.id] = refund
        if address is not None:
            self.set_address(refund, address)
        return refund

    def set_address(self, refund: Refund, address: str) -> None:
        refund.address = address
        refund.known = frozenset(self.seen)
        refund.known_height = len(self.chain) - 1

    def give(self, refund: str, address: str) -> Refusal | None:
        """The payer (or the merchant) gives the address."""
        r = self.refunds[refund]
        if self.state(refund) != "requested":
            return Refusal(self.state(refund))
        bad = self.bad_address(r.merchant, r.sats, address)
        if not bad:
            self.set_address(r, address)
        return bad

    def clear(self, refund: str) -> Refusal | None:
        """The merchant takes the address away; the payer may give another."""
        if self.state(refund) != "ready":
            return Refusal(self.state(refund))
        self.refunds[refund].address = None
        self.refunds[refund].word = None
        return None

    def cancel(self, refund: str) -> Refusal | None:
        if self.state(refund) in ("sent", "canceled"):
            return Refusal(self.state(refund))
        self.refunds[refund].canceled = True
        return None

    def say(self, refund: str, txid: str, vout: int) -> Refusal | None:
        """The merchant says: it was this output."""
        for out in self.shown(refund):
            if (out.txid, out.vout) == (txid, vout):
                self.refunds[refund].word = (out.block, txid, vout)
                return None
        return Refusal("no such output")

    def mine(self, block: Sequence[Tx] | Block) -> Block:
        """A new block at the tip: of these transactions, or one that was lost and returns."""
        if not isinstance(block, Block):
            block = Block(f"b{len(self.seen)}", len(self.chain), tuple(block))
        self.chain.append(block)
        self.seen.add(block.id)
        return block

    def reorganise(self, depth: int, blocks: Sequence[Sequence[Tx] | Block]) -> None:
        """The newest blocks go, with the words about them; these come in their place."""
        gone = {b.id for b in self.chain[len(self.chain) - depth :]}
        del self.chain[len(self.chain) - depth :]
        for r in self.refunds.values():
            if not self.words_return and r.word and r.word[0] in gone:
                r.word = None
        for block in blocks:
            self.mine(block)
