// Polls the invoice's status while the page is visible, and reloads it when something changed.
"use strict";
(() => {
  const shown = document.getElementById("status").dataset;
  const url = location.pathname.replace(/\/$/, "") + "/status";
  let wait = 2000;
  const changed = (now) =>
    now.status !== shown.status ||
    String(now.received_sats) !== shown.received ||
    String(now.unconfirmed_sats) !== shown.unconfirmed ||
    String(now.confirmations) !== shown.confirmations;
  const poll = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(url, { cache: "no-store" });
        if (!answer.ok) throw new Error(answer.status);
        if (changed(await answer.json())) return location.reload();
        wait = 2000;
      } catch {
        wait = Math.min(wait * 2, 60000);
      }
    }
    setTimeout(poll, wait);
  };
  setTimeout(poll, wait);
})();
