// An invoice in a frame over a shop's own page. Shops' plug-ins know these names and messages:
// docs/merchants/shop-plugins.md.
"use strict";
(() => {
  const own = new URL(document.currentScript.src);
  let root = own.href.slice(0, own.href.lastIndexOf("/modal/")), overlay = null, frame = null;
  const listeners = { enter: [], leave: [], message: [] };
  const call = (kind, event) => listeners[kind].forEach((listener) => listener(event));

  const hideFrame = () => {
    if (!overlay) return;
    call("leave");
    overlay.remove();
    overlay = frame = null;
  };
  // By the payer, who may have paid: the plug-in decides what follows.
  const close = () => {
    hideFrame();
    call("message", { data: "close", origin: new URL(root).origin });
  };
  const showInvoice = (id) => {
    hideFrame();
    overlay = document.createElement("div");
    overlay.style.cssText = "position:fixed;inset:0;z-index:2147483000;background:#0008";
    frame = document.createElement("iframe");
    frame.src = `${root}/invoice?id=${encodeURIComponent(id)}`;
    frame.name = "btcpay";
    frame.allow = "clipboard-write";
    // Below the button, which would cover the invoice's first line on a narrow screen.
    frame.style.cssText = "position:absolute;top:60px;width:100%;height:calc(100% - 60px);border:0;background:transparent";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "\u00d7";
    button.setAttribute("aria-label", "\u00d7");
    button.style.cssText = "position:absolute;top:8px;inset-inline-end:8px;width:44px;height:44px;"
      + "border:0;border-radius:22px;font:24px/1 sans-serif;color:#111;background:#fff;cursor:pointer";
    button.addEventListener("click", close);
    overlay.append(frame, button);
    call("enter");
    document.body.append(overlay);
    button.focus();
  };

  addEventListener("message", (event) => {
    if (!frame || event.source !== frame.contentWindow || event.origin !== new URL(root).origin) return;
    if (event.data === "close") close();
    else call("message", event);
  });
  addEventListener("keydown", (event) => { if (overlay && event.key === "Escape") close(); });

  // Plug-ins call it by this name, BTCPay Server's.
  window.btcpay = {
    showInvoice,
    hideFrame,
    showFrame: () => { if (overlay) overlay.style.display = ""; },
    setApiUrlPrefix: (url) => { root = String(url).replace(/\/+$/, ""); },
    onModalWillEnter: (listener) => { listeners.enter = [listener]; },
    onModalWillLeave: (listener) => { listeners.leave = [listener]; },
    onModalReceiveMessage: (listener) => { listeners.message = [listener]; },
  };
})();
