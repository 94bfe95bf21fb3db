// A till: a keypad types into the field; its screen stays on while it waits for a payment; a sale that
// is taken back turns red on whatever it shows. Coming back to a page loads it anew: the next press is
// for another customer.
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const SECOND = 1000, SOON = 5 * SECOND, SELDOM = 60 * SECOND;

  // The button says what it charges: the sum of what is typed, if each part is a plain number, and
  // the tip that the cashier has chosen, rounded as round_money does (half to even). So do those of
  // what is sold often.
  const amount = find("amount"), keypad = find("keypad"), show = find("show");
  const { charge, zero, places, signs } = show?.dataset ?? {};
  const plainLabel = show?.textContent;
  const unitsOf = (text) => {
    const digits = [...text.trim()].map((sign) => {
      const place = signs.indexOf(sign);
      return place < 0 ? sign : "0123456789. "[place];  // with a group mark it is no plain number
    }).join("");
    const [, whole, part = ""] = digits.match(/^(\d{1,9})(?:\.(\d*))?$/) ?? [];
    if (whole === undefined || part.length > Number(places)) return NaN;
    return Number(whole + part.padEnd(Number(places), "0"));
  };
  const tipOf = (units) => {
    const hundredths = units * Number(document.querySelector("#tips :checked")?.value ?? 0);
    const whole = Math.floor(hundredths / 100), rest = hundredths % 100;
    return whole + (rest > 50 || (rest === 50 && whole % 2) ? 1 : 0);
  };
  const inOwnSigns = (units) => {
    const number = String(units).padStart(Number(places) + 1, "0");
    const end = number.length - Number(places);
    const text = Number(places) ? `${number.slice(0, end)}.${number.slice(end)}` : number;
    return [...text].map((sign) => signs[sign === "." ? 10 : Number(sign)]).join("");
  };
  const sayPrice = (button) => {
    const price = button.querySelector(".price");
    price.dataset.plain ??= price.textContent;
    const units = Number(button.value.split(" ")[0].replace(".", "")), tip = tipOf(units);
    price.textContent = tip ? amount.placeholder.replace(zero, inOwnSigns(units + tip)) : price.dataset.plain;
  };
  const sayCharge = () => {
    const sum = amount.value.split("+").map(unitsOf).reduce((total, each) => total + each, 0);
    const units = sum + tipOf(sum);
    show.textContent = units ? charge.replace(zero, inOwnSigns(units)) : plainLabel;
    document.querySelectorAll("#suggested button").forEach(sayPrice);
  };
  if (show) {
    amount.addEventListener("input", sayCharge);
    find("tips")?.addEventListener("change", sayCharge);
    addEventListener("pageshow", sayCharge);
  }

  // The keypad. On a touch screen it stands in for the system's own.
  if (keypad && matchMedia("(pointer: coarse)").matches) amount.inputMode = "none";
  keypad?.addEventListener("click", (event) => {
    const key = event.target.closest("button")?.dataset.key;
    if (key === undefined || (key === "+" && !/[^+]$/.test(amount.value))) return;
    const { value, selectionStart, selectionEnd } = amount;
    const isMarked = selectionEnd > selectionStart;
    const begin = isMarked || !key ? value.slice(0, isMarked ? selectionStart : -1) : value;
    amount.value = begin + key + (isMarked ? value.slice(selectionEnd) : "");
    amount.setSelectionRange(amount.value.length, amount.value.length);
    sayCharge();
  });

  // Sounds, where somebody has switched them on: hertz, one after another.
  const GOOD = [660, 880], BAD = [330, 220, 330, 220], NOTE_S = 0.18;
  const choice = find("sound");
  const isLoud = () => localStorage.getItem("sound") === "on";
  let audio;
  const play = (notes) => {
    if (!isLoud()) return;
    audio ??= new AudioContext();
    audio.resume();
    notes.forEach((hertz, place) => {
      const tone = audio.createOscillator(), begin = audio.currentTime + place * NOTE_S;
      tone.frequency.value = hertz;
      tone.connect(audio.destination);
      tone.start(begin);
      tone.stop(begin + NOTE_S * 0.9);
    });
  };
  if (choice) {
    choice.checked = isLoud();
    choice.addEventListener("change", () => {
      localStorage.setItem("sound", choice.checked ? "on" : "off");
      play(GOOD);
    });
  }

  // What the page shows: whether it waits for a payment, has one, or has lost one.
  const WAITING = ["waiting", "partial", "seen", "overdue"];
  const outcome = () => {
    const { state, takenBack } = find("main").dataset;
    return takenBack === "true" ? "bad" : ["seen", "paid"].includes(state) ? "good" : "";
  };
  let lock = null, lastOutcome = outcome();
  const stayOn = async () => {
    const waits = WAITING.includes(find("main").dataset.state);
    if (!waits) {
      await lock?.release();
      lock = null;
    } else if (!document.hidden && (!lock || lock.released)) {
      lock = await navigator.wakeLock?.request("screen");
    }
  };
  const update = () => {
    const newOutcome = outcome();
    if (newOutcome && newOutcome !== lastOutcome) play(newOutcome === "good" ? GOOD : BAD);
    lastOutcome = newOutcome;
    stayOn().catch(() => {});
  };
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  document.addEventListener("visibilitychange", update);
  new MutationObserver(update).observe(document.body, { childList: true });
  update();

  // The last sales: soon while one may still be taken back, else seldom.
  const pause = () => (find("alarms").dataset.waits === "true" ? SOON : SELDOM);
  const renew = async () => {
    const answer = await fetch(find("alarms").dataset.sales, { cache: "no-store" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const alarms = find("alarms"), fresh = page.getElementById("alarms");
    if (!fresh) return;
    if (Number(fresh.dataset.count) > Number(alarms.dataset.count)) play(BAD);
    Object.assign(alarms.dataset, { waits: fresh.dataset.waits, count: fresh.dataset.count });
    if (alarms.textContent !== fresh.textContent) alarms.replaceChildren(...fresh.children);
    const sales = find("sales");
    if (sales && !sales.contains(document.activeElement)) {
      sales.replaceWith(document.adoptNode(page.getElementById("sales")));
    }
  };
  const watch = async () => {
    if (!document.hidden) await renew().catch(() => {});
    setTimeout(watch, pause());
  };
  setTimeout(watch, pause());
})();
