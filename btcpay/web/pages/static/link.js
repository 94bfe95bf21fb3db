// A link's form: what the amount is about worth, by the service's own price while that is one.
"use strict";
(() => {
  const worth = document.getElementById("worth"), field = document.getElementById("amount");
  // Coming back brings a form that has not been sent: the next payment is somebody else's.
  addEventListener("pageshow", (event) => { if (event.persisted && worth) location.reload(); });
  if (!worth) return;
  const ASKED_AT_MOST = 30; // for a page that nobody touches: an hour
  let rate = {}, until = 0, unasked = ASKED_AT_MOST, timer, pause;
  // Digits of Arabic and Persian keyboards count from these.
  const digit = (it) => it.charCodeAt(0) - (it < "\u06f0" ? 0x660 : 0x6f0);
  // Signs, groups and what may be thousands are the service's to read: nothing is said about them.
  const isPlain = (text) => {
    const match = /^\d{1,11}(?:([.,])(\d+))?$/.exec(text);
    if (!match) return false;
    const [, mark, decimals = ""] = match;
    const isThousand = mark === "," && decimals.length === 3;
    return decimals.length <= worth.dataset.places && !isThousand;
  };
  const readAmount = () => {
    if (!field) return Number(worth.dataset.amount);
    const text = field.value.normalize("NFKC").trim().replace("\u066b", ".");
    const plain = text.replace(/[\u0660-\u0669\u06f0-\u06f9]/g, digit);
    return isPlain(plain) ? Number(plain.replace(",", ".")) : 0;
  };
  const write = (btc) => {
    const [whole, rest] = btc.toFixed(8).split(".");
    const text = `${whole.replace(/\B(?=(\d{3})+$)/g, ",")}.${rest}`;
    const localized = text.replace(/./g, (it) => worth.dataset.signs["0123456789.,".indexOf(it)]);
    return `\u2248\u00a0${localized}\u00a0BTC`;
  };
  const show = () => {
    const amount = Date.now() < until ? readAmount() : 0; // that clock goes on while the machine sleeps
    const part = document.createElement("bdi"); // a number and its unit, whatever the direction
    if (amount) part.textContent = write(Math.ceil(amount / rate.price * 1e8) / 1e8);
    worth.replaceChildren(...amount ? [part] : []);
  };
  const ask = async () => {
    if (document.hidden || !unasked) return;
    unasked -= 1;
    const answer = await fetch(`${location.pathname}/price`, { cache: "no-store" });
    rate = answer.ok ? await answer.json() : {};
    const left = rate.price ? rate.good_for_ms : 0;
    until = Date.now() + left;
    show();
    clearTimeout(timer);
    timer = setTimeout(renew, left || 30000);
  };
  const renew = () => { show(); ask().catch(() => {}); };
  const wake = () => {
    unasked = ASKED_AT_MOST;
    if (Date.now() < until) show(); else renew();
  };
  // Said when the typing pauses, so that a screen reader does not say every digit.
  field?.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(wake, 300); });
  document.addEventListener("visibilitychange", wake);
  renew();
})();
