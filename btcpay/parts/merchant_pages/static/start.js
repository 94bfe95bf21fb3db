// The first form: proposes the browser's time zone where nobody has chosen one.
"use strict";
(() => {
  const zone = document.getElementById("timezone");
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && zone.value === "UTC" && [...zone.options].some((one) => one.value === own)) zone.value = own;
})();
