// Keeps an invoice's page up to date by polling its status; copies, counts down, prints.
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const every = (selector, act) => document.querySelectorAll(selector).forEach(act);
  const announce = (text) => { find("announce").textContent = text; };
  const text = (id) => (find(id)?.textContent || "").replace(/\s+/g, " ").trim();
  const summary = () => `${text("state")}. ${text("words")} ${text("send")} ${text("story")}`.replace(/ +/g, " ").trim();
  const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

  // The server's clock: its `now` when it answered, and what has passed here since.
  let status, signature, serverNow, answeredAt, changedAt = performance.now();
  const takeStatus = (body) => {
    status = body;
    serverNow = Date.parse(body.now);
    answeredAt = performance.now();
  };
  const now = () => serverNow + performance.now() - answeredAt;
  const sign = ({ now, checked_at, ...rest }) => JSON.stringify([Object.entries(rest).sort(), !checked_at]);
  const read = () => {
    takeStatus(JSON.parse(find("main").dataset.status));
    signature = sign(status);
  };

  // By what the page shows, not by the last answer: its new content may have failed to load.
  const isFinal = () => !["waiting", "partial", "seen", "overdue"].includes(find("main").dataset.state);
  const isOver = () => status.expires_at && now() >= Date.parse(status.expires_at);
  const mayStillBePaid = () => ["waiting", "partial"].includes(find("main").dataset.state);

  // Amounts in the unit that the reader chose: each has its other text beside it.
  const showUnit = () => every("[data-sats]", (it) => {
    it.dataset.btc ??= it.textContent;
    const inUnit = it.dataset[document.body.dataset.unit || "btc"];
    if (it.textContent !== inUnit) it.textContent = inUnit;
  });
  const isInSats = () => document.body.dataset.unit === "sats";

  // Times of the reader's own zone: a deadline as short as it can be, a receipt's with its zone.
  const LANGUAGE = document.documentElement.lang;
  // Of one calendar with the merchant's pages: Persian has another one by itself.
  const CLOCK = { hour: "numeric", minute: "2-digit", calendar: "gregory" }, DATE = { day: "numeric", month: "short" };
  const showTimes = () => every("time[data-local]", (it) => {
    const at = new Date(it.dateTime);
    const isNear = at - Date.now() < DAY / 2 || at.toDateString() === new Date().toDateString();
    const day = it.dataset.local === "at" ? { ...DATE, year: "numeric", timeZoneName: "short" }
      : isNear ? {} : { ...DATE, weekday: "short" };
    it.textContent = new Intl.DateTimeFormat(LANGUAGE, { ...day, ...CLOCK }).format(at);
  });
  const digits = (number, least = 1) =>
    new Intl.NumberFormat(LANGUAGE, { minimumIntegerDigits: least }).format(number);
  const RELATIVE = [["day", DAY], ["hour", HOUR], ["minute", MINUTE], ["second", SECOND]];
  const relative = (ms, least) => {
    const [unit, size] = RELATIVE.find(([, size]) => Math.abs(ms) >= size * least) || RELATIVE[3];
    return new Intl.RelativeTimeFormat(LANGUAGE).format(Math.trunc(ms / size), unit);
  };

  // What goes on with time: how long ago the chain was looked at, how much is left to pay.
  const show = () => {
    const { longAgoMs, countdownMs, lifeMs } = find("main").dataset;
    const checked = find("checked-ago");
    if (checked && status.checked_at) {
      const elapsed = Math.max(SECOND, now() - Date.parse(status.checked_at));
      checked.dateTime = status.checked_at;
      checked.textContent = relative(-elapsed, 1);
      find("long-ago").hidden = elapsed <= longAgoMs;
    }
    if (find("checked") && performance.now() > 2 * MINUTE) find("checked").hidden = false;
    if (find("countdown")) {
      const left = Math.max(0, Date.parse(status.expires_at) - now());
      const seconds = Math.ceil(left / SECOND), isUrgent = left < countdownMs;
      find("countdown").textContent = `${digits(Math.floor(seconds / 60))}:${digits(seconds % 60, 2)}`;
      if (!find("standing")) return; // a till has no ring, and counts down from the start
      find("time-left").hidden = !isUrgent;
      find("pay-by").hidden = isUrgent;
      find("standing").classList.toggle("urgent", isUrgent);
      find("pay-in").textContent = relative(left, 2);
      find("ring-left").setAttribute("stroke-dasharray", `${(100 * left) / lifeMs} 100`);
    }
  };

  // The details: open at a desk, else as the payer left them.
  let unfolded = matchMedia("(min-width: 56rem)").matches;
  const fold = () => {
    const it = find("fold");
    if (it) it.open = unfolded;
  };

  // A wallet that opened has taken the screen, or the focus.
  const missWallet = () => {
    let isLeft = false;
    const leave = () => { isLeft = true; };
    for (const event of ["blur", "pagehide"]) addEventListener(event, leave, { once: true });
    setTimeout(() => {
      const it = find("no-wallet");
      if (isLeft || document.hidden || !it) return;
      it.hidden = false;
      it.scrollIntoView();
      announce(it.querySelector("p").textContent);
    }, 1.5 * SECOND);
  };

  // Takes the page's new content, and keeps the keyboard's place in it.
  const renew = async () => {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) throw answer;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = summary(), old = find("main"), fresh = page.getElementById("main");
    const focused = old.contains(document.activeElement) && document.activeElement.id;
    old.replaceWith(document.adoptNode(fresh));
    document.title = page.title;
    read();
    fold();
    showUnit();
    showTimes();
    changedAt = performance.now();
    if (focused) (find(focused) || find("state")).focus();
    if (summary() !== before) announce(summary());
    tellShop();
  };

  // Tells a shop's page around this frame how it stands; leads a payer back, if asked to.
  const WORDS = { waiting: "new", partial: "new", overdue: "new", seen: "paid", paid: "complete",
    expired: "expired", canceled: "invalid" };
  let lastState;
  const tellShop = () => {
    const { state, shop, id, leadsBack } = find("main").dataset;
    if (!shop || lastState === state) return;
    if (parent !== window) {
      if (!lastState) parent.postMessage("loaded", shop);
      parent.postMessage({ invoiceId: id, status: WORDS[state] }, shop);
    } else if (lastState && state === "paid" && leadsBack === "true") find("return")?.click();
    lastState = state;
  };

  // Every 2 s, slower when nothing happens and on errors; once a minute after the end.
  let timer, failures = 0, asking = false;
  const pause = () => {
    const quiet = performance.now() - changedAt;
    if (isFinal()) return MINUTE;
    return quiet < 10 * MINUTE ? 2 * SECOND : quiet < HOUR ? 10 * SECOND : MINUTE;
  };
  const ask = async () => {
    const answer = await fetch(find("main").dataset.poll || location.pathname + "/status", { cache: "no-store" });
    if (!answer.ok) throw answer;
    takeStatus(await answer.json());
    if (sign(status) !== signature || (isOver() && mayStillBePaid())) await renew();
  };
  const poll = async () => {
    if (asking || document.hidden) return;
    asking = true;
    let wait;
    try {
      await ask();
      failures = 0;
      wait = pause();
    } catch (problem) {
      failures += 1;
      const retryAfterMs = problem instanceof Response ? SECOND * (problem.headers.get("Retry-After") || 0) : 0;
      wait = Math.max(retryAfterMs, Math.min(MINUTE, SECOND * 2 ** failures));
    }
    asking = false;
    const offline = find("offline");
    if (offline) offline.hidden = failures < 2;
    show();
    clearTimeout(timer);
    timer = setTimeout(poll, wait);
  };
  const wake = () => {
    clearTimeout(timer);
    changedAt = performance.now();
    if (!document.hidden) poll();
  };

  // Buttons, and the QR code, which is copied by a press.
  const copy = async (text) => {
    try {
      return await navigator.clipboard.writeText(text);
    } catch { /* not over http, and not within a page that does not allow it */ }
    const field = document.createElement("textarea"), focused = document.activeElement;
    field.value = text;
    field.className = "unseen";
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    focused?.focus({ preventScroll: true });
  };
  const say = (it) => {
    const done = document.body.dataset.copied, label = it.dataset.label || it.textContent;
    announce(`${it.getAttribute("aria-label") || label}: ${done}`);
    it.dataset.said = done;
    setTimeout(() => delete it.dataset.said, 2 * SECOND);
    if (!it.matches("button")) return;
    it.dataset.label = label;
    it.textContent = done;
    setTimeout(() => { it.textContent = label; }, 2 * SECOND);
  };
  const press = async (it) => {
    if (it.id === "print") return print();
    if (it.id === "unit") {
      document.body.dataset.unit = isInSats() ? "btc" : "sats";
      return showUnit();
    }
    const { copy: text, copySats, copyHref, share: url } = it.dataset;
    if (url) return navigator.share({ url, title: document.title });
    if (!text && !copyHref) return;
    await copy((isInSats() && copySats) || text || find(copyHref).getAttribute("href"));
    say(it);
  };

  document.documentElement.classList.add("js");
  if (navigator.share) every("[data-share]", (it) => { it.hidden = false; });
  addEventListener("click", (event) => {
    if (event.target.closest("#open-wallet")) missWallet();
    if (event.target.closest("#unfold")) unfolded = !find("fold").open;
    const it = event.target.closest("button, [data-copy-href]");
    if (it) press(it).catch(() => {});
  });

  // Forms. A double click makes one invoice; coming back makes the button work again.
  addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || form.dataset.again) return; // a search, a download: again means again
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => every("form", (it) => { delete it.dataset.sent; }));
  // A form that was not taken begins at its first wrong field, which is typed over.
  const wrong = document.querySelector("[aria-invalid]");
  wrong?.focus({ preventScroll: true });
  wrong?.select?.();
  (wrong?.closest(".field") || wrong)?.scrollIntoView({ block: "center" });

  showTimes();

  // An invoice's page.
  if (!find("main").dataset.status) return;
  read();
  fold();
  show();
  tellShop();
  setInterval(show, SECOND);
  document.addEventListener("visibilitychange", wake);
  addEventListener("online", wake);
  timer = setTimeout(poll, pause());
})();
