"""Blocks instead of addresses: the chain's headers, and facts that each block proves."""

HOUR_MS = 3_600_000
# As long as a finished invoice's address was looked at until now, unless it was set otherwise.
WATCHED_MS = 168 * HOUR_MS

STATEMENTS = (
    # The best chain, linked from the first header that was kept. `read_at` is when its block was
    # read, null while it is to be read; `named`: an explorer says that it concerns us. `spends`
    # is kept of a block that was read before an earlier one: what it spends may be found later.
    """CREATE TABLE block (
        height BIGINT PRIMARY KEY CHECK (height >= 0),
        hash TEXT NOT NULL UNIQUE,
        header {bytes} NOT NULL,
        mined_at BIGINT NOT NULL,
        read_at BIGINT,
        named BIGINT NOT NULL DEFAULT 0 CHECK (named IN (0, 1)),
        spends {bytes}
    )""",
    "CREATE INDEX block_unread ON block (named, height) WHERE read_at IS NULL",
    "CREATE INDEX block_spends ON block (height) WHERE spends IS NOT NULL",
    # The script that an address stands for, in hex, as blocks have it; a check fills what is null.
    # `history_at` is when an explorer was last asked in which blocks the address is.
    "ALTER TABLE invoice ADD COLUMN script TEXT",
    "ALTER TABLE invoice ADD COLUMN history_at BIGINT",
    "CREATE UNIQUE INDEX invoice_script ON invoice (script) WHERE script IS NOT NULL",
    "CREATE INDEX invoice_without_script ON invoice (seq) WHERE script IS NULL",
    # What is in a block and no payment yet is found again when its block is read; what waited for
    # one was watched however long ago its invoice had ended.
    """INSERT INTO meta (name, value)
        SELECT 'begin_at', CAST(MIN(since) AS TEXT) FROM (
            SELECT COALESCE(checked_at, created_at) AS since FROM invoice
                WHERE status = 'open' OR finished_at > {now} - {watched_ms} OR id IN (
                    SELECT invoice_id FROM output
                    WHERE payment_id IS NULL AND vanished_at IS NULL)
            UNION ALL SELECT block_time_at FROM output
                WHERE payment_id IS NULL AND block_time_at IS NOT NULL
            UNION ALL SELECT {now} FROM invoice
        ) AS looks HAVING COUNT(*) > 0""",
    "DELETE FROM meta WHERE name IN"
    " ('tip_height', 'tip_at', 'high_height', 'final_height', 'compared')",
    # `inputs`: the outpoints that a waiting transaction spends, as JSON; `replaced_height`: the
    # block that has spent one of them otherwise. `asked_at`: when an explorer was last asked
    # whether it is spent.
    # What is in a block was proven to be there.
    """CREATE TABLE new_output (
        txid TEXT NOT NULL,
        vout BIGINT NOT NULL CHECK (vout >= 0),
        invoice_id TEXT NOT NULL REFERENCES invoice (id),
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        amount_sats BIGINT NOT NULL{integer} CHECK (amount_sats BETWEEN 1 AND 2100000000000000),
        coinbase BIGINT NOT NULL CHECK (coinbase IN (0, 1)),
        first_seen_at BIGINT NOT NULL,
        seen_waiting BIGINT NOT NULL CHECK (seen_waiting IN (0, 1)),
        inputs TEXT,
        vanished_at BIGINT,
        replaced_height BIGINT,
        block_height BIGINT,
        block_hash TEXT,
        block_time_at BIGINT,
        position BIGINT,
        spent_height BIGINT,
        asked_at BIGINT,
        payment_id TEXT REFERENCES payment (id),
        PRIMARY KEY (invoice_id, txid, vout),
        CHECK ((block_height IS NULL) = (block_hash IS NULL)),
        CHECK ((block_height IS NULL) = (block_time_at IS NULL)),
        CHECK (block_height IS NOT NULL OR (payment_id IS NULL AND spent_height IS NULL)),
        CHECK (vanished_at IS NULL OR block_height IS NULL)
    )""",
    """INSERT INTO new_output (txid, vout, invoice_id, merchant_id, amount_sats, coinbase,
            first_seen_at, seen_waiting, vanished_at, block_height, block_hash, block_time_at,
            position, spent_height, payment_id)
        SELECT txid, vout, invoice_id, merchant_id, amount_sats,
            CASE WHEN payment_id IS NULL THEN 0 ELSE coinbase END,
            first_seen_at, seen_waiting, vanished_at,
            CASE WHEN payment_id IS NOT NULL THEN block_height END,
            CASE WHEN payment_id IS NOT NULL THEN block_hash END,
            CASE WHEN payment_id IS NOT NULL THEN block_time_at END,
            CASE WHEN payment_id IS NOT NULL THEN position END,
            CASE WHEN payment_id IS NOT NULL THEN spent_height END,
            payment_id
        FROM output""",
    "DROP TABLE output",
    "ALTER TABLE new_output RENAME TO output",
    # The balance reads this index alone; a coin that has moved leaves it.
    "CREATE INDEX output_unspent ON output (merchant_id, payment_id, amount_sats)"
    " WHERE vanished_at IS NULL AND spent_height IS NULL",
    # Money on its way, and all that is money or may become money.
    "CREATE INDEX output_waiting ON output (invoice_id)"
    " WHERE vanished_at IS NULL AND payment_id IS NULL",
    "CREATE INDEX output_alive ON output (invoice_id) WHERE vanished_at IS NULL",
    "CREATE INDEX output_of_payment ON output (payment_id) WHERE payment_id IS NOT NULL",
    # A block that leaves the chain takes back what came in it and what was spent in it.
    "CREATE INDEX output_of_block ON output (block_height) WHERE block_height IS NOT NULL",
    "CREATE INDEX output_spent ON output (spent_height) WHERE spent_height IS NOT NULL",
    # Which of our coins does a block spend?
    "CREATE INDEX output_coin ON output (txid, vout)"
    " WHERE block_height IS NOT NULL AND spent_height IS NULL",
    # What was said to be spent without a payment's being made was taken back above.
    """UPDATE balance SET total_sats = (SELECT COALESCE(SUM(amount_sats), 0) FROM output
            WHERE output.merchant_id = balance.merchant_id
            AND vanished_at IS NULL AND spent_height IS NULL)""",
    # A proof is made when its block is read, which may be before the payment counts.
    """CREATE TABLE new_proof (
        invoice_id TEXT NOT NULL REFERENCES invoice (id),
        txid TEXT NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (invoice_id, txid)
    )""",
    """INSERT INTO new_proof (invoice_id, txid, document)
        SELECT payment.address_invoice_id, payment.tx_hash, proof.document
        FROM proof JOIN payment ON payment.id = proof.payment_id""",
    "DROP TABLE proof",
    "ALTER TABLE new_proof RENAME TO proof",
    # What asked addresses in turn, and shared them between runs, is gone.
    "ALTER TABLE invoice DROP COLUMN looks",
    "ALTER TABLE invoice DROP COLUMN doubted_at",
    "ALTER TABLE invoice DROP COLUMN claimed_until",
    "ALTER TABLE invoice DROP COLUMN begun",
    "ALTER TABLE invoice DROP COLUMN begun_at",
    "ALTER TABLE merchant DROP COLUMN probed_at",
    "ALTER TABLE merchant DROP COLUMN swept_at",
    "ALTER TABLE merchant DROP COLUMN unspent_at",
    "ALTER TABLE explorer_use DROP COLUMN swept",
)


def up(migrator, db):
    """Makes the tables, and takes along payments, proofs, coins and what waits."""
    sqlite = type(migrator).__name__ == "SqliteMigrator"
    words = {
        "bytes": "BLOB" if sqlite else "BYTEA",
        "watched_ms": WATCHED_MS,
        "integer": " CHECK (typeof(amount_sats) = 'integer')" if sqlite else "",
        "now": "CAST(strftime('%s', 'now') AS INTEGER) * 1000"
        if sqlite
        else "CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT)",
    }
    for statement in STATEMENTS:
        db.execute_sql(statement.format(**words))
