// What customers see: what is typed shows on the small checkout at once; the logo before it is sent.
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const preview = find("preview"), seller = preview.querySelector(".seller"), logo = preview.querySelector("img");
  const canvas = preview.querySelector("canvas"), file = find("logo-file");

  const show = () => {
    const name = find("name").value.trim();
    seller.firstElementChild.textContent = name || preview.dataset.seller;
    seller.hidden = !name && Boolean(logo || !canvas.hidden);
    preview.querySelector(".contact").textContent = find("contact").value.trim();
    const accent = find("accent").value;
    preview.style.setProperty("--accent", accent);
    preview.style.setProperty("--on-accent", textOn(accent));
  };

  // White or black, whichever has more contrast (WCAG 2.2, relative luminance).
  const textOn = (colour) => {
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const share = parseInt(colour.slice(at, at + 2), 16) / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
    return 1.05 / light >= light / 0.05 ? "#ffffff" : "#000000";
  };

  // A logo of any size: what is too large for the server is sent smaller.
  const MOST_BYTES = 65536, LARGEST_PX = 600;
  const shrink = async (picture) => {
    const longest = Math.max(picture.width, picture.height);
    for (let scale = Math.min(1, LARGEST_PX / longest); scale > 0.01; scale /= 2) {
      const small = document.createElement("canvas");
      small.width = Math.max(1, Math.round(picture.width * scale));
      small.height = Math.max(1, Math.round(picture.height * scale));
      small.getContext("2d").drawImage(picture, 0, 0, small.width, small.height);
      const blob = await new Promise((done) => { small.toBlob(done, "image/png"); });
      if (blob && blob.size <= MOST_BYTES) return blob;
    }
    return null;
  };

  const draw = async () => {
    const picture = file.files[0] && (await createImageBitmap(file.files[0]).catch(() => null));
    const isTooLarge = picture && file.files[0].size > MOST_BYTES;
    const blob = isTooLarge ? await shrink(picture) : null;
    if (blob) {
      const chosen = new DataTransfer();
      chosen.items.add(new File([blob], "logo.png", { type: blob.type }));
      file.files = chosen.files;
    }
    canvas.hidden = !picture;
    if (logo) logo.hidden = Boolean(picture);
    if (picture) {
      [canvas.width, canvas.height] = [picture.width, picture.height];
      canvas.getContext("2d").drawImage(picture, 0, 0);
    }
    show();
  };

  for (const id of ["name", "accent", "contact"]) find(id).addEventListener("input", show);
  file.addEventListener("change", draw);
  show();
})();
