// Keeps an invoice's page up to date by polling its status; copies, counts down, prints.
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const announce = (text) => { find("announce").textContent = text; };
  const told = () => `${find("state").textContent}. ${find("words").textContent.replace(/\s+/g, " ").trim()}`;
  const SECOND = 1000, MINUTE = 60 * SECOND;

  // The server's clock: its `now` when it answered, and what has passed here since.
  let status, signature, serverNow, heardAt, changedAt = performance.now();
  const hear = (body) => {
    status = body;
    serverNow = Date.parse(body.now);
    heardAt = performance.now();
  };
  const now = () => serverNow + performance.now() - heardAt;
  const sign = ({ now, checked_at, ...rest }) => JSON.stringify([Object.entries(rest).sort(), !checked_at]);
  const read = () => {
    hear(JSON.parse(find("main").dataset.status));
    signature = sign(status);
  };

  // By what the page shows, not by what was heard: its new content may have failed to come.
  const isFinal = () => !["waiting", "partial", "seen", "overdue"].includes(find("main").dataset.state);
  const isOver = () => status.expires_at && now() >= Date.parse(status.expires_at);
  const mayStillBePaid = () => ["waiting", "partial"].includes(find("main").dataset.state);

  // Takes the page's new content, and keeps the keyboard's place in it.
  const renew = async () => {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) throw answer;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = told(), old = find("main"), fresh = page.getElementById("main");
    const focused = old.contains(document.activeElement) && document.activeElement.id;
    old.replaceWith(document.adoptNode(fresh));
    document.title = page.title;
    read();
    changedAt = performance.now();
    if (focused) (find(focused) || find("state")).focus();
    if (told() !== before) announce(told());
  };

  const RELATIVE = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const ago = (seconds) => {
    const [unit, size] = RELATIVE.find(([, size]) => seconds >= size);
    const format = new Intl.RelativeTimeFormat(document.documentElement.lang);
    return format.format(-Math.floor(seconds / size), unit);
  };
  const show = () => {
    if (isFinal()) return;
    const { longAgoMs, countdownMs } = find("main").dataset;
    const checked = find("checked-ago");
    if (checked && status.checked_at) {
      const elapsed = Math.max(0, now() - Date.parse(status.checked_at));
      checked.dateTime = status.checked_at;
      checked.textContent = ago(Math.max(1, Math.floor(elapsed / SECOND)));
      find("long-ago").hidden = elapsed <= longAgoMs;
    }
    if (find("countdown")) {
      const left = Math.max(0, Date.parse(status.expires_at) - now());
      const seconds = Math.ceil(left / SECOND);
      find("time-left").hidden = left >= countdownMs;
      find("pay-by").hidden = !find("time-left").hidden;
      find("countdown").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    }
  };

  // Every 2 s while something may happen, slower when nothing has for long; slower on errors.
  let timer, failures = 0, asking = false;
  const pause = () => {
    const quiet = performance.now() - changedAt;
    return quiet < 10 * MINUTE ? 2 * SECOND : quiet < 60 * MINUTE ? 10 * SECOND : MINUTE;
  };
  const ask = async () => {
    const answer = await fetch(find("main").dataset.poll || location.pathname + "/status", { cache: "no-store" });
    if (!answer.ok) throw answer;
    hear(await answer.json());
    if (sign(status) !== signature || (isOver() && mayStillBePaid())) await renew();
  };
  const poll = async () => {
    if (asking || document.hidden || isFinal()) return;
    asking = true;
    let wait;
    try {
      await ask();
      failures = 0;
      wait = pause();
    } catch (problem) {
      failures += 1;
      const asked = problem instanceof Response ? SECOND * (problem.headers.get("Retry-After") || 0) : 0;
      wait = Math.max(asked, Math.min(MINUTE, SECOND * 2 ** failures));
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

  const copy = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.createElement("textarea"), focused = document.activeElement;
    field.value = text;
    field.className = "unseen";
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    focused?.focus({ preventScroll: true });
  };
  const press = async (button) => {
    if (button.id === "print") return print();
    const { copy: text, copyHref } = button.dataset;
    if (!text && !copyHref) return;
    await copy(text || find(copyHref).getAttribute("href"));
    const label = button.dataset.label || button.textContent;
    button.dataset.label = label;
    button.textContent = document.body.dataset.copied;
    announce(`${label}: ${document.body.dataset.copied}`);
    setTimeout(() => { button.textContent = label; }, 2 * SECOND);
  };

  document.documentElement.classList.add("js");
  addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) press(button).catch(() => {});
  });
  // A double click makes one invoice; coming back makes the button work again.
  addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return; // a search, a download: again means again
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });
  // A wrong amount is typed over.
  document.querySelector("[aria-invalid]")?.select();
  if (!find("main").dataset.status) return;
  read();
  show();
  setInterval(show, SECOND);
  document.addEventListener("visibilitychange", wake);
  addEventListener("online", wake);
  timer = setTimeout(poll, 2 * SECOND);
})();
