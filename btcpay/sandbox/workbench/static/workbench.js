// Keeps the workbench up to date and presses its buttons without leaving it; all works without it.
"use strict";
(() => {
  const EVERY_MS = 1000;
  const find = (id) => document.getElementById(id);
  const frame = document.querySelector("iframe");

  // Takes what has changed, but for what holds `kept`; where the keyboard was, it stays.
  const renew = (html, kept) => {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    for (const old of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(old.id);
      if (!next || next.outerHTML === old.outerHTML || (kept && old.contains(kept))) continue;
      const focused = old.contains(document.activeElement) && document.activeElement.id;
      old.replaceWith(document.adoptNode(next));
      if (focused) find(focused)?.focus({ preventScroll: true });
    }
    document.title = fresh.title;
  };

  // A page that somebody has chosen stays until the scene or the newest invoice is another one.
  let currentPage = find("customer")?.dataset.page;
  let lines = document.querySelectorAll("#story li").length;
  const follow = () => {
    const page = find("customer")?.dataset.page;
    const steps = document.querySelectorAll("#story li");
    const isTold = steps.length > lines;
    if (isTold) find("announce").textContent = steps[steps.length - 1].textContent;
    // Unlike an invoice's page, a refund's does not keep itself up to date.
    const isStale = isTold && page?.includes("/refund/");
    if (page && (page !== currentPage || isStale)) frame.src = page;
    currentPage = page;
    lines = steps.length;
  };

  const take = async (answer, kept) => {
    renew(await answer.text(), kept);
    follow();
  };
  let timer, pressing = 0;
  const poll = async () => {
    clearTimeout(timer);
    if (!document.hidden && !pressing) {
      try {
        const answer = await fetch("/", { cache: "no-store" });
        // What went wrong stays until something else is pressed.
        if (!pressing) await take(answer, document.querySelector("#notice [role=alert]"));
        find("away").hidden = true;
      } catch {
        find("away").hidden = false;
      }
    }
    clearTimeout(timer);
    timer = setTimeout(poll, EVERY_MS);
  };

  const press = async (form, button) => {
    const fields = new FormData(form);
    if (button?.name) fields.append(button.name, button.value);
    const url = button?.getAttribute("formaction") || form.getAttribute("action");
    pressing += 1;
    try {
      await take(await fetch(url, { method: "POST", body: new URLSearchParams(fields) }));
    } finally {
      pressing -= 1;
    }
    // On a phone the customer's page is below the story: both fit from here on.
    const place = matchMedia("(min-width: 64rem)").matches ? "nearest" : "start";
    if (url.endsWith("/scene")) find("story").scrollIntoView({ block: place });
  };
  addEventListener("submit", (event) => {
    event.preventDefault();
    press(event.target, event.submitter).catch(() => { find("away").hidden = false; });
  });
  addEventListener("click", (event) => {
    if (event.target.closest("a[target=customer]")) frame.scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("visibilitychange", poll);
  timer = setTimeout(poll, EVERY_MS);
})();
