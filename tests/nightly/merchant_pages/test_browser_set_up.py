"""A shop is set up in a real browser whose script shows what is typed."""

import shop_walk
from merchant_browser import log_in


def test_a_shop_is_set_up_by_one_link_and_a_phone(new_counter, open_tab, tmp_path):
    tab = log_in(open_tab(new_counter.root, size=shop_walk.PHONE), new_counter)
    walk = shop_walk.Walk(tab, new_counter)
    shop_walk.set_up(walk, tmp_path / "logo.png", script=True)
