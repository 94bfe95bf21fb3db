"""The parameters of all queries, with their types."""

from typing import TypedDict


class Values(TypedDict, total=False):
    """The values of a query's parameters, by name. All queries share these names."""

    about: str
    above_height: int | None
    accent: str | None
    account_key: str
    address: str | None
    address_index: int
    address_invoice_id: str
    after: int
    again_of: str | None
    amount: str | None
    amount_mode: str
    amount_sats: int
    amount_usd: str | None
    amount_usd_at_receipt: str | None
    amount_usd_quote: str
    answer: str | None
    archived_ms: int | None
    ask_email: str
    ask_name: str
    ask_note: str
    asked_amount: str | None
    asked_currency: str | None
    asked_ms: int | None
    asked_since: int | None
    at: int
    attempts: int
    basis: str | None
    before: int
    begin: int | str
    below_minor: int
    bill_id: str | None
    block_hash: str | None
    block_height: int | None
    block_time_ms: int | None
    body_sha256: str
    browser: str
    business_address: str | None
    calls: int
    checked_ms: int | None
    coinbase: int
    coming_unapplied_sats: int
    command: str | None
    confirmations: int | None
    confirmed_sats: int
    contact: str | None
    covered_ms: int | None
    created_ms: int
    currency: str
    customer_email: str | None
    customer_name: str | None
    customer_note: str | None
    day: int
    delivered_ms: int | None
    deposit_address: str
    description: str | None
    descriptor: str
    detail: str
    disabled_ms: int | None
    disabled_reason: str | None
    document: str
    doubted_ms: int | None
    due_days: int
    due_ms: int
    end: int | str
    evening: int
    event_seq: int | None
    every: str | None
    expires_ms: int | None
    failed_ms: int | None
    feerate: int | None
    failures: int
    finished_after: int
    finished_ms: int | None
    first: int
    first_day: int
    first_local: str | None
    first_ms: int | None
    first_seen_ms: int
    from_status: str
    gap_before: int | None
    goal: str | None
    good_ms: int | None
    gratuity: str | None
    gratuity_by_cashier: int
    gratuity_percents: str | None
    happened_ms: int
    hash: str
    header: bytes
    height: int | None
    held_ms: int | None
    held_until: int | None
    host: str
    id: int | str
    idempotency_key: str
    inputs: str | None
    invoice_id: str | None
    is_tls: int
    key_id: str
    kind: str
    kinds: str | None
    label: str
    language: str
    last: int
    last_day: int
    last_four: str
    last_ms: int
    last_used_ms: int | None
    left_until: int | None
    length: int
    limit: int
    line: str | None
    locked_ms: int
    logo: bytes | None
    logo_sha256: str | None
    logo_type: str | None
    look_ahead_ms: int
    max_amount: str | None
    max_amount_usd: str | None
    merchant_id: int
    metadata: str | None
    min_amount: str | None
    min_amount_usd: str | None
    mined_before: int
    mined_ms: int
    minor: int
    minute_ms: int
    name: str | None
    named_txid: str | None
    named_vout: int | None
    newest_height: int | None
    next_index: int
    next_ms: int | None
    not_before: int | None
    now: int
    number: int | None
    numbers: str
    offset: int
    operation: str
    order_id: str | None
    owner: str
    paid: str
    paid_ms: int | None
    part: str
    password: str
    password_scrypt: str | None
    payment_id: str | None
    payment_link_id: str | None
    payments: int
    permissions: str | None
    place: int | str
    port: int
    position: int | None
    price: str
    price_usd: str
    prices: str
    read_ms: int | None
    reason: str | None
    receipt_number: int | None
    receipts: int
    received_sats: int
    receiver_id: str
    reference: str | None
    refusals: int
    renews: int | None
    renews_ms: int | None
    replaced_height: int | None
    requests: str
    resource_id: str | None
    response: str | None
    rests_until_ms: int
    return_paid: str | None
    return_unpaid: str | None
    return_url: str | None
    root: str
    scope: str
    script: str
    secret: str | None
    secret_sha256: str
    seen_waiting: int
    sender_address: str
    sender_name: str
    sent_height: int | None
    sent_ms: int | None
    sent_sats: int | None
    seq: int
    series_id: str | None
    settled_reason: str | None
    settled_sats: int
    shop_order: str | None
    shop_texts: str | None
    shop_url: str
    since: int
    since_ms: int
    spends: bytes | None
    spent_height: int | None
    stake_minor: int
    state: str | None
    status: int | str | None
    stopped_ms: int | None
    store_id: str | None
    suggested: str | None
    tax_number: str | None
    tax_percent: str | None
    texts: str
    through: str
    till_only: int
    timezone: str
    title: str | None
    tolerance_percent: str | None
    total: int
    total_sats: int
    transport: str
    tx_hash: str | None
    txid: str
    unapplied_sats: int
    unconfirmed_sats: int
    undone_ms: int | None
    unpriced: int
    until: int
    until_day: int | None
    until_ms: int
    url: str | None
    usd_at_sending: str | None
    used_after: int
    used_ahead: int | None
    used_before: int
    user_name: str
    value: str
    value_at_receipt: str | None
    value_at_sending: str | None
    value_minor: int
    vanished_after: int
    vanished_ms: int | None
    vout: int
    wallet_gap_limit: int
    was: str
    written_ms: int
