"""The first schema: what is sold (invoice, payment_link), what was seen (output), what it means.

Times are whole milliseconds since 1970 UTC (`_at`), amounts whole satoshis (`_sats`), dollars
exact decimal text (`_usd`). Every rule that must never break stands here, not in the program.
"""

TABLES = (
    # One row for each fact about the database itself: its network, the last tip, the last check.
    """CREATE TABLE meta (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
    )""",
    # `account_key` is chain code and public key in hex: the same wallet under another SLIP-132
    # prefix must not serve two merchants, or they would be given the same addresses.
    # `next_index` only ever grows: an address is handed out once.
    """CREATE TABLE merchant (
        id {serial},
        name TEXT NOT NULL UNIQUE,
        script_type TEXT NOT NULL CHECK (script_type IN ('p2wpkh', 'p2sh-p2wpkh', 'p2pkh')),
        xpub TEXT NOT NULL,
        account_key TEXT NOT NULL UNIQUE,
        next_index BIGINT NOT NULL DEFAULT 0 CHECK (next_index BETWEEN 0 AND 2147483648),
        created_at BIGINT NOT NULL
    )""",
    # The secret itself is never stored. `revoked_at` is final, whatever the clock does later;
    # `expires_at` is the end of a rotated key's grace.
    """CREATE TABLE api_key (
        id TEXT PRIMARY KEY,
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        name TEXT NOT NULL,
        scope TEXT NOT NULL CHECK (scope IN ('read', 'write')),
        secret_sha256 TEXT NOT NULL UNIQUE,
        last_four TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        last_used_at BIGINT,
        expires_at BIGINT,
        revoked_at BIGINT
    )""",
    """CREATE TABLE payment_link (
        seq {serial},
        id TEXT NOT NULL UNIQUE,
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        status TEXT NOT NULL CHECK (status IN ('active', 'inactive')),
        title TEXT,
        description TEXT,
        amount_mode TEXT NOT NULL CHECK (amount_mode IN ('fixed', 'flexible')),
        amount_usd TEXT,
        min_amount_usd TEXT,
        max_amount_usd TEXT,
        created_at BIGINT NOT NULL,
        CHECK ((amount_mode = 'fixed') = (amount_usd IS NOT NULL)),
        CHECK (amount_mode = 'flexible' OR (min_amount_usd IS NULL AND max_amount_usd IS NULL))
    )""",
    "CREATE INDEX payment_link_newest ON payment_link (merchant_id, created_at, seq)",
    # `seq` orders invoices of the same millisecond. `deposit_address` and `address_index` are
    # UNIQUE: two invoices on one address could both be settled by one payment.
    # `checked_at` is the last successful look at the address and `looks` counts them: a run that
    # gathered its facts before another one's were written finds the count changed and stands back.
    # `asked_at` is the last time that somebody looked at the invoice.
    """CREATE TABLE invoice (
        seq {serial},
        id TEXT NOT NULL UNIQUE,
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        payment_link_id TEXT REFERENCES payment_link (id),
        status TEXT NOT NULL CHECK (status IN ('open', 'paid', 'expired', 'canceled')),
        amount_sats BIGINT NOT NULL CHECK (amount_sats BETWEEN 1 AND 2100000000000000),
        amount_usd_quote TEXT NOT NULL,
        price_usd TEXT NOT NULL,
        description TEXT,
        customer_email TEXT,
        deposit_address TEXT NOT NULL UNIQUE,
        address_index BIGINT NOT NULL,
        tx_hash TEXT,
        expires_at BIGINT,
        paid_at BIGINT,
        finished_at BIGINT,
        settled_reason TEXT,
        looks BIGINT NOT NULL DEFAULT 0,
        checked_at BIGINT,
        asked_at BIGINT,
        created_at BIGINT NOT NULL,
        UNIQUE (merchant_id, address_index),
        CHECK ((status = 'open') = (finished_at IS NULL)),
        CHECK ((status = 'paid') = (paid_at IS NOT NULL)),
        CHECK ((status = 'paid') = (tx_hash IS NOT NULL)),
        CHECK (status = 'paid' OR settled_reason IS NULL)
    )""",
    "CREATE INDEX invoice_newest ON invoice (merchant_id, created_at, seq)",
    "CREATE INDEX invoice_newest_by_status ON invoice (merchant_id, status, created_at, seq)",
    "CREATE INDEX invoice_watched ON invoice (status, finished_at)",
    # Only links ask for the open invoices of one link; most invoices have none.
    "CREATE INDEX invoice_of_link ON invoice (payment_link_id, status)"
    " WHERE payment_link_id IS NOT NULL",
    # A payment is what one transaction confirmed to the address of one invoice.
    # `address_invoice_id` is the invoice that the address belongs to; `invoice_id` the one it
    # settled, null while the sum is not reached and for what came late or beyond.
    """CREATE TABLE payment (
        seq {serial},
        id TEXT NOT NULL UNIQUE,
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        address_invoice_id TEXT NOT NULL REFERENCES invoice (id),
        invoice_id TEXT REFERENCES invoice (id),
        amount_sats BIGINT NOT NULL CHECK (amount_sats > 0),
        amount_usd_at_receipt TEXT,
        tx_hash TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        UNIQUE (address_invoice_id, tx_hash),
        CHECK (invoice_id IS NULL OR invoice_id = address_invoice_id)
    )""",
    "CREATE INDEX payment_newest ON payment (merchant_id, created_at, seq)",
    "CREATE INDEX payment_of_invoice ON payment (invoice_id) WHERE invoice_id IS NOT NULL",
    # Every output ever seen to one of our addresses, spent ones too. `vanished_at` marks one
    # that left the mempool: no money, but history. `proven` says that its block was proven to us,
    # `payment_id` is set once it counts.
    # The key begins with the invoice: an explorer that once showed an output at a wrong address
    # must not keep it from the right one.
    """CREATE TABLE output (
        txid TEXT NOT NULL,
        vout BIGINT NOT NULL CHECK (vout >= 0),
        invoice_id TEXT NOT NULL REFERENCES invoice (id),
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        amount_sats BIGINT NOT NULL CHECK (amount_sats BETWEEN 1 AND 2100000000000000),
        coinbase BIGINT NOT NULL CHECK (coinbase IN (0, 1)),
        first_seen_at BIGINT NOT NULL,
        vanished_at BIGINT,
        block_height BIGINT,
        block_hash TEXT,
        block_time_at BIGINT,
        spent_height BIGINT,
        proven BIGINT NOT NULL DEFAULT 0 CHECK (proven IN (0, 1)),
        payment_id TEXT REFERENCES payment (id),
        PRIMARY KEY (invoice_id, txid, vout),
        CHECK ((block_height IS NULL) = (block_hash IS NULL)),
        CHECK ((block_height IS NULL) = (block_time_at IS NULL)),
        CHECK (proven = 0 OR block_height IS NOT NULL),
        CHECK (vanished_at IS NULL OR (block_height IS NULL AND payment_id IS NULL))
    )""",
    # The balance reads this index alone; a coin that has moved leaves it.
    "CREATE INDEX output_unspent ON output (merchant_id, payment_id, amount_sats)"
    " WHERE vanished_at IS NULL AND spent_height IS NULL",
    # Money on its way: these addresses are looked at however old the invoice is.
    "CREATE INDEX output_waiting ON output (invoice_id)"
    " WHERE vanished_at IS NULL AND payment_id IS NULL",
    # What happened to an invoice and when; never changed, only added to.
    """CREATE TABLE event (
        seq {serial},
        invoice_id TEXT NOT NULL REFERENCES invoice (id),
        happened_at BIGINT NOT NULL,
        kind TEXT NOT NULL,
        detail TEXT NOT NULL
    )""",
    "CREATE INDEX event_of_invoice ON event (invoice_id, seq)",
    # A held key has an owner and no answer; a done one has the first answer, word for word.
    # Whoever holds it longer than the lock lasts loses it to the next one that asks.
    """CREATE TABLE idempotency_key (
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        operation TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        body_sha256 TEXT NOT NULL,
        owner TEXT NOT NULL,
        locked_at BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        response TEXT,
        PRIMARY KEY (merchant_id, operation, idempotency_key)
    )""",
    "CREATE INDEX idempotency_key_age ON idempotency_key (created_at)",
)


def up(migrator, db):
    """Creates the tables; `serial` is the one word that the two databases spell differently."""
    sqlite = type(migrator).__name__ == "SqliteMigrator"
    serial = (
        "INTEGER PRIMARY KEY AUTOINCREMENT"
        if sqlite
        else "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    )
    for statement in TABLES:
        db.execute_sql(statement.format(serial=serial))
