// A till: its screen stays on while it waits for a payment. Coming back to a page loads it anew: the
// next press is for another customer.
"use strict";
(() => {
  const WAITING = ["waiting", "partial", "seen", "overdue"];
  let lock = null;
  const stayOn = async () => {
    const waits = WAITING.includes(document.getElementById("main").dataset.state);
    if (!waits) {
      await lock?.release();
      lock = null;
    } else if (!document.hidden && (!lock || lock.released)) {
      lock = await navigator.wakeLock?.request("screen");
    }
  };
  const update = () => { stayOn().catch(() => {}); };
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  document.addEventListener("visibilitychange", update);
  new MutationObserver(update).observe(document.body, { childList: true });
  update();
})();
