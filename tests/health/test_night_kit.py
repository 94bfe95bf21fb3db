"""Alert rules and dashboard in deploy/: they name what /metrics has, and ring when they should."""

import json
import re

import pytest
import yaml

from tests.support.builders import Clock
from tests.support.fake_esplora import open_till
from tests.support.paths import PROJECT
from tests.support.programs import done, tool
from tests.support.samples import figures

ALERTS = PROJECT / "deploy" / "prometheus-alerts.yaml"
DASHBOARD = PROJECT / "deploy" / "grafana-dashboard.json"
RULES = {
    rule["alert"]: rule
    for group in yaml.safe_load(ALERTS.read_text())["groups"]
    for rule in group["rules"]
}
PANELS = json.loads(DASHBOARD.read_text())["panels"]
QUERIES = [
    *((name, rule["expr"]) for name, rule in RULES.items()),
    *(
        (panel["title"], target["expr"])
        for panel in PANELS
        for target in panel["targets"]
    ),
]
PROMETHEUS_OWN = {"instance", "job"}


@pytest.fixture(scope="module")
def found(tmp_path_factory, ticker):
    """The metrics after an invoice was made, paid and checked."""
    with open_till(tmp_path_factory.mktemp("shop"), ticker, Clock()) as till:
        till.confirm(till.shop.invoice())
        yield figures(till.shop)


@pytest.mark.parametrize("query", [query for _, query in QUERIES])
def test_every_metric_and_label_that_is_named_exists(query, found):
    labels: dict[str, set[str]] = {}
    for sample in found:
        labels.setdefault(sample.partition("{")[0], set()).update(
            re.findall(r"\{(\w+)=", sample)
        )
    named = re.findall(r"(blocktill_\w+)(\{[^}]*\})?", query)
    assert named
    for metric, matchers in named:
        assert metric in labels, metric
        asked = set(re.findall(r"(\w+)=~?\"", matchers))
        assert asked <= labels[metric] | PROMETHEUS_OWN
    grouped = re.findall(r"\b(?:by|on) \(([^)]*)\)", query)
    asked = {label for group in grouped for label in re.split(r",\s*", group)}
    assert (
        asked <= set().union(*(labels[metric] for metric, _ in named)) | PROMETHEUS_OWN
    )


# Each alert's reason, when it rings and when it does not yet. A series is a value a minute,
# `0+60x30` as Prometheus writes it; asked for at so many minutes. Every shop has BUILD and CHECKED.
BUILD = {"blocktill_build_info": "1x240"}
CHECKED = {"blocktill_last_check_timestamp_seconds": "0+60x240"}
FAILED, CALLED = (
    f'blocktill_explorer_{kind}_total{{host="a"}}' for kind in ("failures", "calls")
)
NONE, GOOD = (
    f'blocktill_price_refreshes_total{{outcome="{kind}"}}' for kind in ("none", "price")
)
LATE = 'blocktill_invoices_attention{reason="late"}'
NEEDED, LIMIT = (
    f'blocktill_gap_{kind}{{merchant="shop"}}' for kind in ("needed", "limit")
)
FAULT, WELL = (
    f'blocktill_requests_total{{operation="get-balance",status="{status}"}}'
    for status in (500, 503)
)
GIVEN_UP, AGAIN = (
    f'blocktill_webhook_deliveries_total{{result="{result}"}}'
    for result in ("given_up", "failed")
)
LOST = 'blocktill_mails_total{result="given_up"}'
CHECK = "blocktill_last_check_timestamp_seconds"
OPEN = "blocktill_open_invoices"
UNDONE = "blocktill_payments_undone_total"
FREE = "blocktill_disk_free_bytes"
AGE = "blocktill_price_age_seconds"
WAITS = "blocktill_webhook_waiting_seconds"
CASES = {
    "all is well": ({"blocktill_database_up": "1x240", LATE: "0x240"}, 60, set()),
    "nothing answers": ({"blocktill_build_info": "1x10 stale"}, 17, {"BlocktillDown"}),
    "nothing answers for four minutes": ({"blocktill_build_info": "1x10 stale"}, 14, set()),
    "the database is away": ({"blocktill_database_up": "0x9"}, 3, {"BlocktillDatabaseDown"}),
    "the database is away for a minute": ({"blocktill_database_up": "1x5 0x9"}, 7, set()),
    "the last check is 16 minutes old": ({CHECK: "0x99"}, 16, {"BlocktillCheckTooOld"}),
    "the last check is 15 minutes old": ({CHECK: "0x99"}, 15, set()),
    "no check was ever complete": ({CHECK: "_", OPEN: "1x99"}, 15, {"BlocktillNeverChecked"}),
    "no check was complete, and nobody waits": ({CHECK: "_", OPEN: "0x99"}, 60, set()),
    "an open invoice is no news": ({OPEN: "1x99"}, 60, set()),
    "four blocks are to be read for half an hour": ({"blocktill_blocks_behind": "4x99"}, 30,
        {"BlocktillBehindTheChain"}),
    "four blocks are to be read for less": ({"blocktill_blocks_behind": "4x99"}, 29, set()),
    "three blocks are to be read": ({"blocktill_blocks_behind": "3x99"}, 60, set()),
    "a payment was undone": ({UNDONE: "0x20 1x99"}, 25, {"BlocktillPaymentUndone"}),
    "a payment was undone long ago": ({UNDONE: "0x20 1x99"}, 90, set()),
    "an invoice was paid late": ({LATE: "1x9"}, 5, {"BlocktillAttention"}),
    "an explorer fails always": ({FAILED: "0+1x99", CALLED: "0+1x99"}, 45,
        {"BlocktillExplorerFailing"}),
    "an explorer fails one time in three": ({FAILED: "0+1x99", CALLED: "0+3x99"}, 45, set()),
    "an explorer that is hardly asked failed": ({FAILED: "0x30 1x99", CALLED: "0x30 1x99"}, 45,
        set()),
    "no source has given a price": ({NONE: "0+1x30", GOOD: "5x30"}, 12, {"BlocktillPriceOld"}),
    "no source has ever given a price": ({NONE: "0+1x30"}, 12, {"BlocktillPriceOld"}),
    "some rounds had no price": ({NONE: "0+1x30", GOOD: "0+1x30"}, 12, set()),
    "nobody asks for a price": ({NONE: "2x30", GOOD: "5x30", AGE: "0+60x30"}, 25, set()),
    "less than a gigabyte is free": ({FREE: "999999999x20"}, 10, {"BlocktillDiskLow"}),
    "a gigabyte is free": ({FREE: "1000000000x20"}, 15, set()),
    "less than 100 MB are free": ({FREE: "1000000000 99999999x20"}, 1, {"BlocktillDiskFull"}),
    "more than three quarters of a gap limit are used": ({NEEDED: "16x20", LIMIT: "20x20"}, 5,
        {"BlocktillGapLimit"}),
    "three quarters of a gap limit are used": ({NEEDED: "15x20", LIMIT: "20x20"}, 15, set()),
    "an endpoint has taken nothing for an hour": (
        {WAITS: "3540+60x20"},
        7,
        {"BlocktillWebhooksLate"},
    ),
    "an endpoint has taken nothing for less": ({WAITS: "0+60x60"}, 60, set()),
    "a webhook was given up": ({GIVEN_UP: "0 0 1x20"}, 5, {"BlocktillNotificationLost"}),
    "a mail was given up": ({LOST: "0 0 1x20"}, 5, {"BlocktillNotificationLost"}),
    "a webhook will be tried again": ({AGAIN: "0 0 1x20"}, 5, set()),
    "a request failed": ({FAULT: "0 0 1x20"}, 5, {"BlocktillServerErrors"}),
    "a request found no price": ({WELL: "0 0 1x20"}, 5, set()),
    "each process counts by itself": ({"blocktill_rate_limit_store_up": "0x9"}, 5,
        {"BlocktillRateLimitsApart"}),
}  # fmt: skip


def test_every_alert_rings_in_a_case():
    assert set(RULES) == set().union(*(ringing for _, _, ringing in CASES.values()))


def trial(case):
    """A case as promtool reads it: what is measured, and which alerts ring then."""
    series, minutes, ringing = CASES[case]
    return {
        "name": case,
        "interval": "1m",
        "input_series": [
            {"series": of_a_shop(name), "values": values}
            for name, values in (BUILD | CHECKED | series).items()
        ],
        "promql_expr_test": [
            {
                "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": f"{minutes}m",
                "exp_samples": [
                    {"labels": f'{{alertname="{name}"}}', "value": 1}
                    for name in sorted(ringing)
                ],
            }
        ],
    }


@pytest.mark.slow
def test_an_alert_rings_when_it_should(tmp_path):
    file = tmp_path / "trials.yaml"
    trials = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [trial(case) for case in CASES],
    }
    file.write_text(yaml.safe_dump(trials))
    done([tool("promtool"), "test", "rules", file])


def of_a_shop(series):
    """The series as Prometheus has it, with its own labels."""
    name, _, labels = series.partition("{")
    own = 'instance="shop:9464",job="blocktill"'
    return f"{name}{{{own},{labels}" if labels else f"{name}{{{own}}}"


def test_prometheus_takes_every_query_of_the_dashboard(tmp_path):
    """As recording rules, with a length in place of Grafana's own."""
    queries = [target["expr"] for panel in PANELS for target in panel["targets"]]
    rules = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(queries)} rules found" in done(
        [tool("promtool"), "check", "rules", file]
    )


def test_every_alert_says_how_bad_it_is_and_what_to_do():
    for rule in RULES.values():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description"}


def test_the_dashboard_shows_every_metric_that_an_alert_is_set_on():
    shown = " ".join(query for _, query in QUERIES[len(RULES) :])
    named = {
        name
        for rule in RULES.values()
        for name in re.findall(r"blocktill_\w+", rule["expr"])
    }
    assert {name for name in named if name not in shown} == set()
