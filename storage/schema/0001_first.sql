-- The first schema (0.3.0): what is sold, what was seen on the chain, and what that means.
--
-- Every rule that must never break stands here (UNIQUE, CHECK, NOT NULL, REFERENCES), not in the
-- program alone. Times (_ms) are whole milliseconds since 1970 UTC, amounts (_sats) whole satoshis,
-- dollars (_usd) exact decimal text. Ids are made by the program, `seq` by the database: it orders
-- rows of the same millisecond.
--
-- One text for both databases, as PostgreSQL spells it. storage/versions.py says what is
-- replaced for SQLite, whose tables are STRICT: they refuse a number of another type as well.
-- Comments may change at any time; a statement, once released, only by a next file.

-- How many files of this folder were run: the version of the database; and the hash of their
-- statements, which tells a database that other files with these numbers have made.
CREATE TABLE schema_step (
    number BIGINT NOT NULL,
    sha256 TEXT NOT NULL
);

-- One row for each fact about the database itself: its network, the last complete check.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Totals since the database was made, added up at the end of each run: a check is a process of its
-- own, and what it counted would end with it. `label` is the outcome, or a host.
CREATE TABLE tally (
    name TEXT NOT NULL,
    label TEXT NOT NULL,
    total BIGINT NOT NULL CHECK (total >= 0),
    PRIMARY KEY (name, label)
);


-- Merchants

-- `descriptor` (BIP380) is all that addresses come from: public keys, and a range below them.
-- `account_key` is a hash of the keys whose children the addresses are: the same wallet in another
-- spelling must not serve two merchants, or they would be given the same addresses.
-- `next_index` only grows: an address is handed out once. 20 addresses (BIP44) is the gap that
-- wallets come with, until the operator says otherwise. The days of `merchant_day` are those of
-- `timezone`, a name of the IANA time zone database. `gratuity_percents`: what the till offers as a
-- tip, whole numbers with a space between; null while it asks for none. `gratuity_by_cashier`: the
-- cashier chooses one, on the keypad's page; else the customer does, before the code is shown.
-- `used_before`: how many of the account's first addresses the chain showed as used when the
-- merchant was made, counted up to the last used one. They are no gap of this shop's.
-- `used_ahead`: the highest of the next addresses that an explorer showed as used, so by somebody
-- else; it tells nothing once `next_index` is beyond it. `look_ahead_ms`: when they are asked about
-- again.
CREATE TABLE merchant (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    descriptor TEXT NOT NULL
        CHECK (substr(descriptor, 1, 3) IN ('pkh', 'wpk', 'tr(', 'wsh', 'sh(')),
    account_key TEXT NOT NULL UNIQUE,
    next_index BIGINT NOT NULL DEFAULT 0 CHECK (next_index BETWEEN 0 AND 2147483648),
    created_ms BIGINT NOT NULL,
    wallet_gap_limit BIGINT NOT NULL DEFAULT 20 CHECK (wallet_gap_limit BETWEEN 1 AND 1000000),
    currency TEXT NOT NULL DEFAULT 'USD' CHECK (length(currency) = 3),
    timezone TEXT NOT NULL DEFAULT 'UTC',
    gratuity_percents TEXT,
    gratuity_by_cashier BIGINT NOT NULL DEFAULT 0 CHECK (gratuity_by_cashier IN (0, 1)),
    used_before BIGINT NOT NULL DEFAULT 0 CHECK (used_before BETWEEN 0 AND 2147483648),
    used_ahead BIGINT CHECK (used_ahead BETWEEN 0 AND 2147483648),
    look_ahead_ms BIGINT NOT NULL DEFAULT 0
);

-- What a merchant's pages show. A logo is stored with what its bytes said that it is, and served
-- as that alone; its hash is its address, so that browsers may keep it for ever. The ways back to
-- the shop are web addresses and nothing else, since a page must not show a link that runs code;
-- `{invoice}` in them stands for the id. `contact` is a line that says how to reach the merchant.
-- `business_address` (lines) and `tax_number` stand on receipts alone. `tax_percent`: the rate of the
-- tax that prices include, a decimal text; null: receipts name no tax.
CREATE TABLE brand (
    merchant_id BIGINT PRIMARY KEY REFERENCES merchant (id),
    name TEXT,
    accent TEXT,
    logo BYTEA,
    logo_type TEXT CHECK (logo_type IN ('image/png', 'image/jpeg', 'image/webp')),
    logo_sha256 TEXT,
    contact TEXT,
    return_paid TEXT
        CHECK (substr(return_paid, 1, 7) = 'http://' OR substr(return_paid, 1, 8) = 'https://'),
    return_unpaid TEXT
        CHECK (substr(return_unpaid, 1, 7) = 'http://' OR substr(return_unpaid, 1, 8) = 'https://'),
    business_address TEXT,
    tax_number TEXT,
    tax_percent TEXT,
    CHECK ((logo IS NULL) = (logo_type IS NULL)),
    CHECK ((logo IS NULL) = (logo_sha256 IS NULL))
);
CREATE INDEX brand_logo ON brand (logo_sha256) WHERE logo_sha256 IS NOT NULL;

-- A shop whose plug-in speaks Greenfield: its address is scheme, host and port, and all that it may
-- name lies within. Its orders stay when its keys are issued anew.
CREATE TABLE store (
    id TEXT PRIMARY KEY,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    shop_url TEXT NOT NULL
        CHECK (substr(shop_url, 1, 7) = 'http://' OR substr(shop_url, 1, 8) = 'https://'),
    created_ms BIGINT NOT NULL,
    UNIQUE (merchant_id, shop_url)
);

-- The secret itself is never stored. `revoked_ms` is final, whatever the clock does later;
-- `expires_ms` is the end of a rotated key's grace. A plug-in's key belongs to its store, and has
-- the `permissions` that this plug-in looks for, with a space between.
CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('read', 'write')),
    secret_sha256 TEXT NOT NULL UNIQUE,
    last_four TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    last_used_ms BIGINT,
    expires_ms BIGINT,
    revoked_ms BIGINT,
    store_id TEXT REFERENCES store (id),
    permissions TEXT,
    CHECK ((store_id IS NULL) = (permissions IS NULL)),
    CHECK (store_id IS NULL OR scope = 'write')
);
CREATE INDEX api_key_of_merchant ON api_key (merchant_id, created_ms);

-- A login link is deleted when it is used, a session when it ends: neither can come back. A session
-- may open what its link says, for as long as it lives. `till_only` has no default: whoever makes a
-- way in has to say what it opens. A session that the owner's password opened has that password's
-- scrypt hash, and ends when the password changes; one that a link opened has none.
CREATE TABLE merchant_login (
    secret_sha256 TEXT PRIMARY KEY,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    expires_ms BIGINT NOT NULL,
    till_only BIGINT NOT NULL CHECK (till_only IN (0, 1))
);

CREATE TABLE merchant_session (
    id TEXT PRIMARY KEY,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    secret_sha256 TEXT NOT NULL UNIQUE,
    browser TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    last_used_ms BIGINT NOT NULL,
    till_only BIGINT NOT NULL CHECK (till_only IN (0, 1)),
    password_scrypt TEXT,
    CHECK (password_scrypt IS NULL OR till_only = 0)
);
CREATE INDEX merchant_session_of_merchant ON merchant_session (merchant_id, created_ms);

-- A link that opens a file of payments without a session, until it is revoked (then it is deleted) or
-- `expires_ms`; the secret itself is never stored. Days count from 1970-01-01 in the merchant's
-- time zone, both whole.
CREATE TABLE file_link (
    id TEXT PRIMARY KEY,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    secret_sha256 TEXT NOT NULL UNIQUE,
    first_day BIGINT NOT NULL,
    last_day BIGINT NOT NULL CHECK (last_day >= first_day),
    expires_ms BIGINT NOT NULL
);
CREATE INDEX file_link_of_merchant ON file_link (merchant_id, expires_ms);

-- A held key has an owner and no answer; a done one has the first answer, word for word. Whoever
-- holds it longer than the lock lasts loses it to the next one that asks. The answer may hold a
-- customer's e-mail address: by `resource_id` its invoice finds it when that is erased.
CREATE TABLE idempotency_key (
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    operation TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    body_sha256 TEXT NOT NULL,
    owner TEXT NOT NULL,
    locked_ms BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    response TEXT,
    resource_id TEXT,
    PRIMARY KEY (merchant_id, operation, idempotency_key)
);
CREATE INDEX idempotency_key_age ON idempotency_key (created_ms);
CREATE INDEX idempotency_key_resource ON idempotency_key (resource_id)
    WHERE resource_id IS NOT NULL;


-- What is sold

-- Amounts are in `currency`; `..._usd` is what each was worth in dollars when the link was made,
-- which the interface shows. `suggested`: decimal texts in `currency` with a space between, in the
-- order in which they are shown. `goal`: what is to come together, shown with how far it is.
-- `ask_...`: what its page asks of a payer, who may leave it out or must give it.
CREATE TABLE payment_link (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    status TEXT NOT NULL CHECK (status IN ('active', 'inactive')),
    title TEXT,
    description TEXT,
    amount_mode TEXT NOT NULL CHECK (amount_mode IN ('fixed', 'flexible')),
    currency TEXT NOT NULL CHECK (length(currency) = 3),
    amount TEXT,
    min_amount TEXT,
    max_amount TEXT,
    amount_usd TEXT,
    min_amount_usd TEXT,
    max_amount_usd TEXT,
    created_ms BIGINT NOT NULL,
    suggested TEXT CHECK (suggested IS NULL OR amount_mode = 'flexible'),
    goal TEXT CHECK (goal IS NULL OR amount_mode = 'flexible'),
    ask_email TEXT NOT NULL DEFAULT 'no' CHECK (ask_email IN ('no', 'may', 'must')),
    ask_name TEXT NOT NULL DEFAULT 'no' CHECK (ask_name IN ('no', 'may', 'must')),
    ask_note TEXT NOT NULL DEFAULT 'no' CHECK (ask_note IN ('no', 'may', 'must')),
    CHECK ((amount_mode = 'fixed') = (amount IS NOT NULL)),
    CHECK (amount_mode = 'flexible' OR (min_amount IS NULL AND max_amount IS NULL)),
    CHECK ((amount IS NULL) = (amount_usd IS NULL)),
    CHECK ((min_amount IS NULL) = (min_amount_usd IS NULL)),
    CHECK ((max_amount IS NULL) = (max_amount_usd IS NULL))
);
CREATE INDEX payment_link_newest ON payment_link (merchant_id, created_ms, seq);

-- A bill asks one customer for `amount`, until that is paid: its invoices live for an hour, each at
-- the price of its moment. `paid` is what they count, as long as the bill has not ended. `due_ms` is
-- the last millisecond of a day, `due_days` after the one on which it was made.
-- With `every` it is of a series, which the first one is kept for: `series_id` is that one's id,
-- `number` counts from its 0. Only the first has `first_local`, the local time that all follow,
-- `until_day` (from 1970-01-01, as days of the merchant are counted), and when its next one is made,
-- which is number `renews`. `stopped_ms`: its customer has ended the series, and gets no mail of it.
-- `held_ms`: a year of its bills was made at once, and the owner is asked about the others.
-- `undone_ms`: the owner took back what the check had made; its period may have another bill.
CREATE TABLE bill (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    status TEXT NOT NULL CHECK (status IN ('open', 'paid', 'ended')),
    amount TEXT NOT NULL,
    currency TEXT NOT NULL CHECK (length(currency) = 3),
    paid TEXT NOT NULL,
    description TEXT,
    reference TEXT CHECK (length(reference) BETWEEN 1 AND 200),
    customer_email TEXT,
    created_ms BIGINT NOT NULL,
    due_days BIGINT NOT NULL CHECK (due_days BETWEEN 0 AND 3650),
    due_ms BIGINT NOT NULL,
    paid_ms BIGINT,
    every TEXT CHECK (every IN ('week', 'month', 'year')),
    series_id TEXT REFERENCES bill (id),
    number BIGINT NOT NULL CHECK (number >= 0),
    first_local TEXT,
    until_day BIGINT,
    renews BIGINT CHECK (renews > 0),
    renews_ms BIGINT,
    stopped_ms BIGINT,
    held_ms BIGINT,
    undone_ms BIGINT,
    CHECK ((every IS NULL) = (series_id IS NULL)),
    CHECK (series_id = id OR (first_local IS NULL AND renews_ms IS NULL AND stopped_ms IS NULL)),
    CHECK (held_ms IS NULL OR series_id = id),
    CHECK (undone_ms IS NULL OR (status = 'ended' AND series_id <> id)),
    CHECK ((status = 'paid') = (paid_ms IS NOT NULL))
);
CREATE UNIQUE INDEX bill_of_period ON bill (series_id, number) WHERE undone_ms IS NULL;
CREATE INDEX bill_newest ON bill (merchant_id, created_ms, seq);
CREATE INDEX bill_open ON bill (merchant_id, due_ms) WHERE status = 'open';
CREATE INDEX bill_renewed ON bill (renews_ms) WHERE renews_ms IS NOT NULL;
CREATE INDEX bill_personal ON bill (created_ms) WHERE customer_email IS NOT NULL;

-- `deposit_address`, its `script` (hex, as blocks have it) and `address_index` are UNIQUE: two
-- invoices on one address could both be settled by one payment.
-- `asked_ms` is the last time that somebody looked at the invoice, `asked_since` the first one
-- after a pause of hours. `failures` are looks that failed in a row, the last at `failed_ms`: an
-- address that always fails waits longer.
-- `gap_before`: so many addresses further than the last paid one before it, this one included; null
-- while nothing has come to it. The largest is the gap limit that a wallet needs.
-- `received_sats`, of them `unconfirmed_sats`; payments of `unapplied_sats` that settle nothing, and
-- `coming_unapplied_sats` that will be such a payment: what settlement says of its outputs, for pages
-- that ask often. `newest_height`: the last block
-- with money that counts; null while some waits, or none came.
-- `covered_ms`: when the whole sum was first seen, in a block or in none: goods may be gone since.
-- `amount` is what it asks for, as it was typed, in `currency`; null: dollars, which the interface
-- was asked for. Then `currency` is the merchant's, which its page shows beside them. `price` is
-- that of one bitcoin in `currency` when the invoice was made, `price_usd` in dollars.
-- `reference`: the number of the shop's order, unique for nothing. `return_url`: where its page
-- leads back to, instead of the merchant's own way.
-- `gratuity`: of an invoice that the till made, how much of `amount` is one; null for every other one.
-- `confirmations` and `tolerance_percent` are what a shop has asked for: the stricter of these and
-- the service's own hold. `store_id`: a plug-in's order. `order_id`: its number there.
-- `shop_order`: the JSON of its amount and currency as they were sent, BTC and SATS too, and of
-- what was asked of its page. `metadata`: the JSON that came with it, which may hold names and
-- addresses.
-- `customer_name`, `customer_note`: what a payment link's page has asked for.
-- `above_height`: our tip when it was made, null where none was known. A coin in a block up to there
-- is older than the invoice and pays nothing of it; a reorganisation lowers it.
-- `receipt_number`: its place among the merchant's invoices in the order in which they were first
-- paid, from 1 without a gap; with it `tax_percent`, the brand's at that time. Both stay when a
-- reorganisation opens the invoice again: its customer may have the receipt.
CREATE TABLE invoice (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
    expires_ms BIGINT,
    paid_ms BIGINT,
    finished_ms BIGINT,
    settled_reason TEXT,
    checked_ms BIGINT,
    asked_ms BIGINT,
    created_ms BIGINT NOT NULL,
    failures BIGINT NOT NULL DEFAULT 0,
    failed_ms BIGINT,
    asked_since BIGINT,
    script TEXT NOT NULL UNIQUE,
    gap_before BIGINT CHECK (gap_before > 0),
    covered_ms BIGINT,
    currency TEXT NOT NULL CHECK (length(currency) = 3),
    amount TEXT,
    price TEXT NOT NULL,
    received_sats BIGINT NOT NULL DEFAULT 0,
    unconfirmed_sats BIGINT NOT NULL DEFAULT 0 CHECK (unconfirmed_sats BETWEEN 0 AND received_sats),
    unapplied_sats BIGINT NOT NULL DEFAULT 0 CHECK (unapplied_sats >= 0),
    coming_unapplied_sats BIGINT NOT NULL DEFAULT 0 CHECK (coming_unapplied_sats >= 0),
    newest_height BIGINT,
    reference TEXT CHECK (length(reference) BETWEEN 1 AND 200),
    return_url TEXT
        CHECK (substr(return_url, 1, 7) = 'http://' OR substr(return_url, 1, 8) = 'https://'),
    gratuity TEXT,
    confirmations BIGINT CHECK (confirmations BETWEEN 1 AND 6),
    tolerance_percent TEXT,
    store_id TEXT REFERENCES store (id),
    order_id TEXT,
    shop_order TEXT,
    metadata TEXT,
    archived_ms BIGINT,
    customer_name TEXT,
    customer_note TEXT,
    bill_id TEXT REFERENCES bill (id),
    above_height BIGINT,
    receipt_number BIGINT CHECK (receipt_number > 0),
    tax_percent TEXT,
    UNIQUE (merchant_id, address_index),
    CHECK ((status = 'open') = (finished_ms IS NULL)),
    CHECK ((status = 'paid') = (paid_ms IS NOT NULL)),
    CHECK ((status = 'paid') = (tx_hash IS NOT NULL)),
    CHECK (status = 'paid' OR settled_reason IS NULL),
    CHECK (status <> 'paid' OR receipt_number IS NOT NULL),
    CHECK (receipt_number IS NOT NULL OR tax_percent IS NULL),
    CHECK ((store_id IS NULL) = (shop_order IS NULL)),
    CHECK (bill_id IS NULL OR payment_link_id IS NULL)
);
CREATE INDEX invoice_newest ON invoice (merchant_id, created_ms, seq);
CREATE INDEX invoice_newest_by_status ON invoice (merchant_id, status, created_ms, seq);
CREATE INDEX invoice_watched ON invoice (status, finished_ms);
-- Most invoices have no link, and are not in these.
CREATE INDEX invoice_of_link ON invoice (payment_link_id, status)
    WHERE payment_link_id IS NOT NULL;
CREATE INDEX invoice_of_link_newest ON invoice (payment_link_id, created_ms, seq)
    WHERE payment_link_id IS NOT NULL;
CREATE INDEX invoice_of_bill ON invoice (bill_id, status) WHERE bill_id IS NOT NULL;
-- One number is never on two receipts, whichever processes give them; the highest is looked for.
CREATE UNIQUE INDEX invoice_receipt ON invoice (merchant_id, receipt_number)
    WHERE receipt_number IS NOT NULL;
-- A reorganisation lowers those of the newest invoices.
CREATE INDEX invoice_above ON invoice (above_height) WHERE above_height IS NOT NULL;
-- The last sales of the till.
CREATE INDEX invoice_of_till ON invoice (merchant_id, created_ms, seq) WHERE gratuity IS NOT NULL;
-- A search for an order's number: the newest of that number.
CREATE INDEX invoice_reference ON invoice (merchant_id, reference, created_ms, seq)
    WHERE reference IS NOT NULL;
CREATE INDEX invoice_of_store ON invoice (store_id, created_ms, seq) WHERE store_id IS NOT NULL;
CREATE INDEX invoice_order ON invoice (store_id, order_id) WHERE order_id IS NOT NULL;
-- Who said what is to be erased: empty where nothing is given, or all is erased.
CREATE INDEX invoice_personal ON invoice (finished_ms)
    WHERE (customer_email IS NOT NULL OR metadata IS NOT NULL
           OR customer_name IS NOT NULL OR customer_note IS NOT NULL) AND finished_ms IS NOT NULL;
CREATE INDEX invoice_paid_index ON invoice (merchant_id, address_index)
    WHERE gap_before IS NOT NULL;
CREATE INDEX invoice_gap ON invoice (merchant_id, gap_before) WHERE gap_before IS NOT NULL;
-- Whom a check asks the mempool for: open, and looked at or near the deadline. Open are those that
-- have not finished; an index on a status is not used where the status is a parameter.
CREATE INDEX invoice_asked ON invoice (asked_ms) WHERE finished_ms IS NULL AND asked_ms IS NOT NULL;
CREATE INDEX invoice_ending ON invoice (expires_ms)
    WHERE finished_ms IS NULL AND expires_ms IS NOT NULL;

-- What happened to an invoice and when; never changed, only added to.
CREATE TABLE event (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    invoice_id TEXT NOT NULL REFERENCES invoice (id),
    happened_ms BIGINT NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX event_of_invoice ON event (invoice_id, seq);

-- Invoices that need a human. The reason is decided by btcpay/settlement/attention.py, in the
-- transaction of what happened. `stake_minor`: what hangs on the decision, in the smallest units of
-- the invoice's currency at its price.
CREATE TABLE attention (
    invoice_id TEXT PRIMARY KEY REFERENCES invoice (id),
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    reason TEXT NOT NULL CHECK (reason IN ('reorganised', 'paid_late', 'short', 'too_much',
                                           'after_cancellation', 'dust_missing', 'vanished',
                                           'refunded_twice', 'older_coin')),
    since_ms BIGINT NOT NULL,
    stake_minor BIGINT NOT NULL CHECK (stake_minor >= 0)
);
CREATE INDEX attention_reason ON attention (reason);
CREATE INDEX attention_since ON attention (since_ms, invoice_id);
CREATE INDEX attention_of_merchant ON attention (merchant_id, stake_minor DESC, invoice_id);


-- What was seen

-- The best chain, linked from the first header that was kept. `read_ms` is when its block was read,
-- null while it is to be read. `spends` is kept of a block that was read before an earlier one:
-- what it spends may be found later. `not_before`: nobody could show the block, and until then it
-- is passed over.
CREATE TABLE block (
    height BIGINT PRIMARY KEY CHECK (height >= 0),
    hash TEXT NOT NULL UNIQUE,
    header BYTEA NOT NULL,
    mined_ms BIGINT NOT NULL,
    read_ms BIGINT,
    spends BYTEA,
    not_before BIGINT
);
CREATE INDEX block_unread ON block (height) WHERE read_ms IS NULL;
CREATE INDEX block_spends ON block (height) WHERE spends IS NOT NULL;

-- What an optional part still has to do, while the core goes on: its work on a block that is read
-- (`height`), all that blocks above `height` did to it and that left the best chain, its sums of one
-- invoice, or its work of a check, which failed. `failures` in a row are counted before each attempt,
-- so that one that ends its process is counted too; the next is at `next_ms`. `reason`: of the last
-- failure.
CREATE TABLE part_work (
    part TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('block', 'undo', 'money', 'check')),
    height BIGINT NOT NULL,
    invoice_id TEXT NOT NULL,
    failures BIGINT NOT NULL,
    next_ms BIGINT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (part, kind, height, invoice_id)
);

-- What one transaction confirmed to the address of one invoice. `address_invoice_id` is the invoice
-- that the address belongs to; `invoice_id` the one it settled, null while the sum is not reached
-- and for what came late or beyond. `currency` is what the merchant counted in when it was
-- received, `value_at_receipt` its value then, with all decimals of that currency: null, as
-- `amount_usd_at_receipt`, when no price was known.
CREATE TABLE payment (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    address_invoice_id TEXT NOT NULL REFERENCES invoice (id),
    invoice_id TEXT REFERENCES invoice (id),
    amount_sats BIGINT NOT NULL CHECK (amount_sats > 0),
    amount_usd_at_receipt TEXT,
    tx_hash TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    currency TEXT NOT NULL CHECK (length(currency) = 3),
    value_at_receipt TEXT,
    UNIQUE (address_invoice_id, tx_hash),
    CHECK (invoice_id IS NULL OR invoice_id = address_invoice_id)
);
CREATE INDEX payment_newest ON payment (merchant_id, created_ms, seq);
CREATE INDEX payment_of_invoice ON payment (invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payment_without_invoice ON payment (merchant_id, created_ms, seq)
    WHERE invoice_id IS NULL;

-- Every output ever seen to one of our addresses, spent ones too. What is in a block was proven to
-- be there; `position` is its transaction's place in it. `payment_id` is set once it counts.
-- `vanished_ms` marks one that left the mempool: no money, but history. `seen_waiting`: it was in
-- the mempool before any block, so a block time before the invoice's only shows a wrong clock.
-- `feerate`: what its transaction pays, in satoshis per 1,000 vbytes, as an explorer said while it
-- waited; nothing is decided by it.
-- `inputs`: the outpoints that a waiting transaction spends, as JSON; `replaced_height`: the block
-- that has spent one of them otherwise.
-- The key begins with the invoice: an explorer that once showed an output at a wrong address must
-- not keep it from the right one.
CREATE TABLE output (
    txid TEXT NOT NULL,
    vout BIGINT NOT NULL CHECK (vout >= 0),
    invoice_id TEXT NOT NULL REFERENCES invoice (id),
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    amount_sats BIGINT NOT NULL CHECK (amount_sats BETWEEN 1 AND 2100000000000000),
    coinbase BIGINT NOT NULL CHECK (coinbase IN (0, 1)),
    first_seen_ms BIGINT NOT NULL,
    seen_waiting BIGINT NOT NULL CHECK (seen_waiting IN (0, 1)),
    feerate BIGINT CHECK (feerate >= 0),
    inputs TEXT,
    vanished_ms BIGINT,
    replaced_height BIGINT,
    block_height BIGINT,
    block_hash TEXT,
    block_time_ms BIGINT,
    position BIGINT,
    spent_height BIGINT,
    payment_id TEXT REFERENCES payment (id),
    PRIMARY KEY (invoice_id, txid, vout),
    CHECK ((block_height IS NULL) = (block_hash IS NULL)),
    CHECK ((block_height IS NULL) = (block_time_ms IS NULL)),
    CHECK (block_height IS NOT NULL OR (payment_id IS NULL AND spent_height IS NULL)),
    CHECK (vanished_ms IS NULL OR block_height IS NULL)
);
-- A balance is counted from this index alone; a coin that has moved leaves it.
CREATE INDEX output_unspent ON output (merchant_id, payment_id, amount_sats)
    WHERE vanished_ms IS NULL AND spent_height IS NULL;
-- What an explorer invents and takes back stays as history; nobody who asks where an invoice stands
-- reads it.
CREATE INDEX output_alive ON output (invoice_id) WHERE vanished_ms IS NULL;
CREATE INDEX output_vanished ON output (vanished_ms) WHERE vanished_ms IS NOT NULL;
-- `payment_id` is always null here, but without it SQLite may read all outputs by another index.
CREATE INDEX output_waiting ON output (payment_id, invoice_id)
    WHERE vanished_ms IS NULL AND payment_id IS NULL;
CREATE INDEX output_of_payment ON output (payment_id) WHERE payment_id IS NOT NULL;
-- A block that leaves the chain takes back what came in it and what was spent in it.
CREATE INDEX output_of_block ON output (block_height) WHERE block_height IS NOT NULL;
CREATE INDEX output_spent ON output (spent_height) WHERE spent_height IS NOT NULL;
-- Which of our coins does a block spend?
CREATE INDEX output_coin ON output (txid, vout)
    WHERE block_height IS NOT NULL AND spent_height IS NULL;
-- What waits and may be replaced, and what was.
CREATE INDEX output_inputs ON output (payment_id, block_height)
    WHERE payment_id IS NULL AND block_height IS NULL AND inputs IS NOT NULL;
CREATE INDEX output_replaced ON output (replaced_height) WHERE replaced_height IS NOT NULL;
-- A search begins with the first letters of an id. SQLite compares texts byte by byte, and so do
-- its UNIQUE indexes; PostgreSQL does when it is told to (the end of this file has the others).
CREATE INDEX output_txid ON output (txid text_pattern_ops);

-- What convinced the service, as JSON that can be checked again offline. It is made when its block
-- is read, which may be before the payment counts.
CREATE TABLE proof (
    invoice_id TEXT NOT NULL REFERENCES invoice (id),
    txid TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (invoice_id, txid)
);

-- Changed in the transaction that changes an output, by the difference that it makes.
-- `confirmed_sats` counts as payment and has not moved; `total_sats` adds what is on its way.
-- `settled_sats` are all payments ever, moved since or not, less what a reorganisation has undone.
CREATE TABLE balance (
    merchant_id BIGINT PRIMARY KEY REFERENCES merchant (id),
    confirmed_sats BIGINT NOT NULL CHECK (confirmed_sats >= 0),
    total_sats BIGINT NOT NULL CHECK (total_sats >= confirmed_sats),
    settled_sats BIGINT NOT NULL DEFAULT 0 CHECK (settled_sats >= 0)
);

-- What a merchant received on a day, so that a sum of days does not read its payments. `day` counts
-- days of the merchant's time zone since 1970-01-01. Changed in the transaction that makes a
-- payment or takes it back, and counted again in the one that changes the zone. `value_minor` is
-- the value at receipt, in the smallest units of the currency that the merchant counted in then;
-- `unpriced` are payments for which no price was known.
CREATE TABLE merchant_day (
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    currency TEXT NOT NULL CHECK (length(currency) = 3),
    day BIGINT NOT NULL,
    payments BIGINT NOT NULL CHECK (payments >= 0),
    unpriced BIGINT NOT NULL CHECK (unpriced BETWEEN 0 AND payments),
    received_sats BIGINT NOT NULL CHECK (received_sats >= payments),
    value_minor BIGINT NOT NULL CHECK (value_minor >= 0),
    PRIMARY KEY (merchant_id, day, currency)
);

-- `root` is host, port and path: what else a URL holds may be secret. `rests_until_ms` is when an
-- explorer that said "too many" may be asked again, `refusals` how often it said so in a row.
CREATE TABLE explorer (
    root TEXT PRIMARY KEY,
    refusals BIGINT NOT NULL CHECK (refusals > 0),
    rests_until_ms BIGINT NOT NULL
);

-- Explorers that lack `/address/:address/txs/mempool`, as mempool on its electrum backend does. Until
-- `until_ms` their `/address/:address/txs` is asked at once.
CREATE TABLE explorer_without_mempool (
    root TEXT PRIMARY KEY,
    until_ms BIGINT NOT NULL
);

-- Calls in each minute, counted before they are made: a process that dies has spent them.
CREATE TABLE explorer_use (
    root TEXT NOT NULL,
    minute_ms BIGINT NOT NULL,
    calls BIGINT NOT NULL CHECK (calls >= 0),
    PRIMARY KEY (root, minute_ms)
);

-- Nodes of the network, each at host:port: when one last answered as it should and the height that
-- it showed then, and until when it is not asked.
CREATE TABLE peer (
    place TEXT PRIMARY KEY,
    good_ms BIGINT,
    height BIGINT,
    left_until BIGINT
);


-- Money that goes back

-- The merchant's own wallet sends a refund, and a block proves it. `store_id`: the shop whose
-- plug-in has asked for it; without `invoice_id` nobody else knows what was paid. `shop_texts`: the
-- JSON of the name and the description that it gave. `address` is the payer's word; `script` (hex)
-- is what blocks are searched for, null where nothing is expected. `above_height`: our tip when the address was given,
-- so that no earlier payment sends it; a reorganisation lowers it, since all above is new then.
-- `tx_hash` and `vout` name the output that sent it: one output sends one refund. `sent_sats`: what
-- that output pays, which is the sum unless the merchant says otherwise. `currency` is
-- what the merchant counted in then, `value_at_sending` its worth in it, `usd_at_sending` in
-- dollars; null when no price was known. `named_txid` and `named_vout`: the output of which the
-- merchant has said that it was this refund. It sends it while a block has it. `basis`: what the
-- sum was reckoned from when nobody said it; the first of an invoice holds for all that follow.
-- `asked_amount`: the money that was said, of which the sum is the worth at that time.
CREATE TABLE refund (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    invoice_id TEXT REFERENCES invoice (id),
    store_id TEXT REFERENCES store (id),
    status TEXT NOT NULL CHECK (status IN ('requested', 'ready', 'sent', 'canceled')),
    amount_sats BIGINT NOT NULL CHECK (amount_sats BETWEEN 1 AND 2100000000000000),
    basis TEXT CHECK (basis IN ('excess', 'all')),
    asked_amount TEXT,
    asked_currency TEXT CHECK (length(asked_currency) = 3),
    reason TEXT,
    shop_texts TEXT,
    address TEXT,
    script TEXT,
    above_height BIGINT,
    tx_hash TEXT,
    vout BIGINT,
    sent_height BIGINT,
    sent_ms BIGINT,
    sent_sats BIGINT CHECK (sent_sats > 0),
    currency TEXT CHECK (length(currency) = 3),
    value_at_sending TEXT,
    usd_at_sending TEXT,
    named_txid TEXT,
    named_vout BIGINT,
    created_ms BIGINT NOT NULL,
    UNIQUE (tx_hash, vout),
    UNIQUE (named_txid, named_vout),
    CHECK (invoice_id IS NOT NULL OR store_id IS NOT NULL),
    CHECK (basis IS NULL OR invoice_id IS NOT NULL),
    CHECK ((asked_amount IS NULL) = (asked_currency IS NULL)),
    CHECK (shop_texts IS NULL OR store_id IS NOT NULL),
    CHECK (status <> 'requested' OR address IS NULL),
    CHECK (script IS NULL OR address IS NOT NULL),
    CHECK ((status IN ('ready', 'sent')) = (script IS NOT NULL)),
    CHECK ((script IS NULL) = (above_height IS NULL)),
    CHECK ((status = 'sent') = (sent_height IS NOT NULL)),
    CHECK ((sent_height IS NULL) = (tx_hash IS NULL)),
    CHECK ((sent_height IS NULL) = (vout IS NULL)),
    CHECK ((sent_height IS NULL) = (sent_ms IS NULL)),
    CHECK ((sent_height IS NULL) = (sent_sats IS NULL)),
    CHECK ((named_txid IS NULL) = (named_vout IS NULL)),
    CHECK (named_txid IS NULL OR script IS NOT NULL),
    CHECK ((sent_height IS NULL) = (currency IS NULL)),
    CHECK (sent_height IS NOT NULL OR (value_at_sending IS NULL AND usd_at_sending IS NULL))
);
CREATE INDEX refund_newest ON refund (merchant_id, seq);
CREATE INDEX refund_of_invoice ON refund (invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX refund_of_script ON refund (script) WHERE script IS NOT NULL;
-- Those to be sent, for which blocks are read.
CREATE INDEX refund_ready ON refund (merchant_id, seq, script, amount_sats)
    WHERE script IS NOT NULL AND sent_height IS NULL;
CREATE INDEX refund_sent ON refund (sent_height, script, amount_sats) WHERE sent_height IS NOT NULL;
CREATE INDEX refund_sent_ms ON refund (merchant_id, sent_ms, seq) WHERE sent_ms IS NOT NULL;

-- Transactions that pay to the script of a refund, each once, however many outputs it has.
-- `document`: the proof, as JSON, without the script, which each refund adds. `prices`: of one
-- bitcoin when its block was read, by currency, as JSON.
CREATE TABLE refund_transaction (
    txid TEXT PRIMARY KEY,
    block_height BIGINT NOT NULL,
    document TEXT NOT NULL,
    prices TEXT NOT NULL
);
CREATE INDEX refund_transaction_height ON refund_transaction (block_height);

-- What blocks paid to the script of a refund: as many outputs of a block as its refunds can use.
-- `again_of`: the refund that this one seems to have sent a second time.
CREATE TABLE refund_output (
    txid TEXT NOT NULL REFERENCES refund_transaction (txid),
    vout BIGINT NOT NULL CHECK (vout >= 0),
    script TEXT NOT NULL,
    amount_sats BIGINT NOT NULL CHECK (amount_sats > 0),
    block_height BIGINT NOT NULL,
    block_time_ms BIGINT NOT NULL,
    position BIGINT NOT NULL,
    again_of TEXT REFERENCES refund (id),
    PRIMARY KEY (txid, vout)
);
CREATE INDEX refund_output_script ON refund_output (script, amount_sats);
CREATE INDEX refund_output_height ON refund_output (block_height);


-- Who is notified

-- A server gives `seq` with gaps, and commits in another order. So `number` is given when an event
-- is first read, one after another, and a reader misses none. `id` is what receivers know it by.
-- `state` is JSON, what was true when it happened and may have changed since; null where the kind
-- alone says it. `resource_id`: a part's own resource, such as a refund, which has its own table.
CREATE TABLE public_event (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    number BIGINT,
    id TEXT NOT NULL,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    invoice_id TEXT REFERENCES invoice (id),
    payment_link_id TEXT REFERENCES payment_link (id),
    resource_id TEXT,
    kind TEXT NOT NULL,
    state TEXT,
    happened_ms BIGINT NOT NULL,
    CHECK (((invoice_id IS NULL) <> (payment_link_id IS NULL)) = (resource_id IS NULL))
);
CREATE UNIQUE INDEX public_event_number ON public_event (number) WHERE number IS NOT NULL;
CREATE INDEX public_event_new ON public_event (seq) WHERE number IS NULL;

-- Who is notified. `url` is sent a signed POST, by a shop's plug-in in the words of Greenfield;
-- `command` is a program; mail goes where `merchant_mail` says, a receipt to its invoice's address,
-- and of a bill to that one's.
-- The secret is kept as it is: it must be read to sign. After a rotation the old one signs too,
-- until `old_until_ms`. `kinds`: a JSON list, null for all. `store_id`: the shop's, which is sent
-- its own orders alone. `failing_since` is the first failure after the last success, `failed_ms`
-- the last.
CREATE TABLE receiver (
    id TEXT PRIMARY KEY,
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    transport TEXT NOT NULL
        CHECK (transport IN ('webhook', 'greenfield', 'command', 'mail', 'receipt', 'bill')),
    url TEXT,
    command TEXT,
    kinds TEXT,
    secret TEXT,
    old_secret TEXT,
    old_until_ms BIGINT,
    store_id TEXT REFERENCES store (id),
    created_ms BIGINT NOT NULL,
    failing_since BIGINT,
    failed_ms BIGINT,
    disabled_ms BIGINT,
    disabled_reason TEXT,
    CHECK ((transport IN ('webhook', 'greenfield')) = (url IS NOT NULL)),
    CHECK ((transport = 'command') = (command IS NOT NULL)),
    CHECK ((url IS NULL) = (secret IS NULL)),
    CHECK ((transport = 'greenfield') = (store_id IS NOT NULL)),
    CHECK ((old_secret IS NULL) = (old_until_ms IS NULL)),
    CHECK ((failing_since IS NULL) = (failed_ms IS NULL)),
    CHECK ((disabled_ms IS NULL) = (disabled_reason IS NULL))
);
CREATE INDEX receiver_of_merchant ON receiver (merchant_id);
-- A plug-in registers its URL anew at each save: that replaces what was there.
CREATE UNIQUE INDEX receiver_of_store ON receiver (store_id, url) WHERE store_id IS NOT NULL;

-- The outbox: one row a receiver and what it is about, which is an event's id, of a receipt the
-- invoice's (whatever a reorganisation does to it, a customer is sent one), or a day on which
-- payments were not found. It waits for `next_ms`; without it, it is delivered or given up.
-- `first_ms`: the first attempt, from which the times of the others follow. `status`: the HTTP
-- status, how the command ended, or the mail server's refusal; null when there was no answer.
-- `line`: the invoice, where a receiver is sent its events one at a time and in order; one that is
-- being sent is held until `held_until`, so that no other process sends it too. `doubted_ms`: the
-- first attempt of a mail that may have been taken without an answer: it is tried once more.
CREATE TABLE delivery (
    receiver_id TEXT NOT NULL REFERENCES receiver (id) ON DELETE CASCADE,
    about TEXT NOT NULL,
    event_seq BIGINT REFERENCES public_event (seq) ON DELETE CASCADE,
    created_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    first_ms BIGINT,
    next_ms BIGINT,
    tried_ms BIGINT,
    delivered_ms BIGINT,
    status BIGINT,
    answer TEXT,
    line TEXT,
    held_until BIGINT,
    doubted_ms BIGINT,
    PRIMARY KEY (receiver_id, about),
    CHECK (next_ms IS NULL OR delivered_ms IS NULL)
);
CREATE INDEX delivery_of_event ON delivery (event_seq);
CREATE INDEX delivery_of_receiver ON delivery (receiver_id, event_seq);
CREATE INDEX delivery_due ON delivery (receiver_id, next_ms, event_seq)
    WHERE next_ms IS NOT NULL;
CREATE INDEX delivery_line ON delivery (receiver_id, line, event_seq, about)
    WHERE line IS NOT NULL;
CREATE INDEX delivery_without_event ON delivery (created_ms) WHERE event_seq IS NULL;

-- `receipts`: whether customers get one, at the address of their invoice; it is stored there alone.
CREATE TABLE merchant_mail (
    merchant_id BIGINT PRIMARY KEY REFERENCES merchant (id),
    address TEXT,
    receipts BIGINT NOT NULL CHECK (receipts IN (0, 1)),
    language TEXT NOT NULL,
    evening BIGINT NOT NULL CHECK (evening IN (0, 1))
);

-- The mail server that the owner has set in the browser: one row at most. It counts while the
-- service has one merchant and the environment names no server: of several merchants, one could
-- read the others' login links. `password` is in clear, since it has to be sent.
CREATE TABLE mail_server (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    host TEXT NOT NULL,
    port BIGINT NOT NULL CHECK (port BETWEEN 1 AND 65535),
    is_tls BIGINT NOT NULL CHECK (is_tls IN (0, 1)),
    user_name TEXT NOT NULL,
    password TEXT NOT NULL,
    sender_name TEXT NOT NULL,
    sender_address TEXT NOT NULL,
    CHECK (user_name <> '' OR password = '')
);


-- PostgreSQL alone

CREATE INDEX invoice_id_begins ON invoice (id text_pattern_ops);
CREATE INDEX invoice_address_begins ON invoice (deposit_address text_pattern_ops);
