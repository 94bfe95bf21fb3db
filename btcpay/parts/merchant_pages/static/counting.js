// Currency and time: the browser's time zone is proposed, and chosen by a press alone.
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const zone = find("timezone"), own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const offer = find("own-zone"), choose = offer.querySelector("button");
  choose.textContent = own;
  offer.hidden = zone.value === own || [...zone.options].every((one) => one.value !== own);
  choose.addEventListener("click", () => { zone.value = own; offer.hidden = true; zone.focus(); });
})();
