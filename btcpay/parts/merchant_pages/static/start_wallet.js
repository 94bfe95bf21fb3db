// The wallet's text: from a code that the camera sees, where the browser can read codes. A file's size.
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const button = find("scan"), video = find("seen"), label = button.textContent;
  const LOOKS_EVERY_MS = 200;
  let stream = null;

  const stop = () => {
    if (stream) stream.getTracks().forEach((track) => track.stop());
    stream = null;
    video.srcObject = null;
    video.hidden = true;
    button.textContent = label;
  };

  const take = (text) => {
    stop();
    find("key").value = text;
    find("key").focus();
    find("announce").textContent = button.dataset.read;
  };

  const look = async (detector, own) => {
    if (stream !== own) return;
    const codes = await detector.detect(video).catch(() => []);  // a picture that is not there yet
    if (stream !== own) return;
    if (codes.length) take(codes[0].rawValue);
    else setTimeout(look, LOOKS_EVERY_MS, detector, own);
  };

  const begin = async () => {
    find("camera-problem").hidden = true;
    try {
      const own = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
      stream = own;
      video.srcObject = own;
      video.hidden = false;
      button.textContent = button.dataset.stop;
      await video.play();
      look(new BarcodeDetector({ formats: ["qr_code"] }), own);
    } catch {
      stop();
      find("camera-problem").textContent = button.dataset.refused;
      find("camera-problem").hidden = false;
    }
  };

  const offer = async () => {
    if (!("BarcodeDetector" in window) || !navigator.mediaDevices) return;
    const formats = await BarcodeDetector.getSupportedFormats();
    find("camera").hidden = !formats.includes("qr_code");
  };

  button.addEventListener("click", () => { if (stream) stop(); else begin(); });
  addEventListener("pagehide", stop);
  offer();

  const file = find("file"), problem = find("file-problem");
  file.addEventListener("change", () => {
    const isTooLarge = Boolean(file.files[0]) && file.files[0].size > Number(file.dataset.mostBytes);
    if (isTooLarge) file.value = "";
    problem.textContent = isTooLarge ? file.dataset.tooLarge : "";
    problem.hidden = !isTooLarge;
  });
})();
