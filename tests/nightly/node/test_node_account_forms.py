"""Accounts of every form on a full node, which verifies all signatures but taproot's.

Bcoin knows no taproot: it relays no output to it, takes one in a block, and lets anybody spend it.
"""

from btcpay.bitcoin.tx import TxOut
from btcpay.sandbox.node.script import address_of, script_of
from btcpay.sandbox.payer.key import Key
from tests.support.accounts import FORMS, Owner
from tests.support.bitcoin_node import NOBODY
from tests.support.node_till import open_chain, open_node_till
from tests.support.spending import spend_p2wpkh


def test_an_invoice_of_every_form_is_paid_proven_spent_and_taken_back(tmp_path, ticker):
    with open_chain() as chain, open_node_till(tmp_path, ticker, chain) as till:
        node = till.node
        owners = {name: Owner(till.shop, name) for name in FORMS}
        invoices = {name: owner.invoice() for name, owner in owners.items()}

        def states():
            return {
                name: (owner.status(invoices[name]), owner.balance())
                for name, owner in owners.items()
            }

        sats = invoices["p2tr"]["amount_sats"]
        txid = till.pay_outputs(
            *((invoices[name], sats) for name in FORMS if name != "p2tr")
        )
        key = Key.new()  # `bit` pays no taproot
        node.pay(address_of(key.script), sats + 500)
        till.mine()
        coins = node.coins(key.script)
        taproot = TxOut(sats, script_of(invoices["p2tr"]["deposit_address"]))
        by_hand = spend_p2wpkh(key, coins, [taproot])
        node.mine_conflict(by_hand.raw)
        till.check()
        assert set(states().values()) == {("paid", (sats, sats))}
        for name, invoice in invoices.items():
            assert till.proof(invoice).txid == (
                by_hand.txid if name == "p2tr" else txid
            )
        places = {
            name: (txid, vout)
            for vout, name in enumerate(n for n in FORMS if n != "p2tr")
        }
        for name, place in places.items():
            spend = owners[name].spend(invoices[name], *place, NOBODY)
            assert node.send(spend.raw) == spend.txid, name
        till.mine()
        spend = owners["p2tr"].spend(invoices["p2tr"], by_hand.txid, 0, NOBODY)
        node.mine_conflict(spend.raw)
        till.check()
        assert set(states().values()) == {("paid", (0, 0))}
        node.reorganise(4)
        till.check()
        assert states().pop("p2tr") == ("open", (0, 0))  # relayed no more
        assert {states()[name] for name in places} == {("open", (0, sats))}
