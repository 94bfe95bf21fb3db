"""The stage that scenes are played on, and the page beside a shop that is away."""

import pytest
import requests

from btcpay.sandbox import shop as shops
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.scenes import stage as stages
from btcpay.sandbox.scenes.stage import Stage
from btcpay.sandbox.scenes.stories import Actors, scenes
from btcpay.sandbox.shop import Shop
from tests.support.builders import Clock, at_once, until
from tests.support.fake_esplora import serving_sandbox
from tests.support.ports import free_port


def played(then):
    """A line, and what comes then."""

    def story():
        yield "before"
        then(stage)

    stage = Stage()
    stage.start("one", "One", story(), quick=True)
    until(lambda: stage.view()["state"] != "playing", "its end")
    return stage.view()


def refuse(_stage):
    raise BadRequest("nothing waits")


def test_a_scene_that_cannot_go_on_says_why_after_what_it_has_told():
    view = played(refuse)
    assert (view["state"], view["problem"]) == ("failed", "nothing waits")
    assert view["lines"] == ["before"]


def test_every_step_of_a_scene_is_a_line_or_an_act():
    steps = [step for scene in scenes().values() for step in scene.steps.splitlines()]
    acts = {step.split()[0] for step in steps if step[:2] != "> "}
    assert len(acts) > 9 and [act for act in acts if not hasattr(Actors, act)] == []


def test_what_does_not_happen_is_waited_for_in_vain(monkeypatch):
    monkeypatch.setattr(stages, "WITHIN_S", 0)
    assert (
        "waited in vain for rain"
        in played(lambda on: on.until(bool, "rain"))["problem"]
    )


def test_a_line_stays_until_it_could_be_read():
    stage = Stage()
    stage.start("one", "One", iter(["a" * 400, "b"]))
    until(lambda: stage.view()["lines"], "the first line")
    assert stage.view()["lines"] == ["a" * 400]
    stage.stop()
    assert (stage.view()["state"], len(stage.view()["lines"])) == ("stopped", 1)


def test_scenes_begun_at_once_are_played_one_at_a_time():
    stage = Stage()
    playing = []
    most = []

    def story():
        playing.append(1)
        most.append(len(playing))
        try:
            stage.until(bool, "the end")
        finally:
            playing.pop()
        yield "never"

    for _ in range(5):
        at_once(4, lambda _: stage.start("one", "One", story()))
    stage.stop()
    assert max(most) == 1 and playing == []


class Counting(Shop):
    """Answers how often it was asked."""

    asked = 0

    def _list(self, path):
        self.asked += 1
        return self.asked


def test_cached_invoices_are_asked_for_again_when_they_are_old_or_forgotten(
    monkeypatch,
):
    shop = Counting("http://127.0.0.1", "sk_test_x")
    monkeypatch.setattr(shops, "CACHED_S", 1e9)
    assert [shop.invoices() for _ in "12"] == [1, 1]
    shop.forget_invoices()
    assert shop.invoices() == 2
    monkeypatch.setattr(shops, "CACHED_S", 1e-9)
    assert [shop.invoices() for _ in "12"] == [3, 4]


@pytest.fixture
def root(tmp_path):
    shop = Shop(f"http://127.0.0.1:{free_port()}", "sk_test_x")
    with serving_sandbox(tmp_path, Clock(), shop) as (_, root):
        yield root


def test_while_the_shop_is_away_the_page_says_so_and_the_chain_goes_on(root):
    assert "The shop does not answer yet." in requests.get(root, timeout=60).text
    for button, fields in (
        ("pay", {"invoice": "inv_1"}),
        ("invoice", {"amount_usd": "1"}),
    ):
        answer = requests.post(f"{root}/sandbox/{button}", data=fields, timeout=60)
        assert answer.status_code == 502 and "the shop does not answer" in answer.text
    assert requests.post(f"{root}/sandbox/mine", timeout=60).ok
