// A shop that sells mugs for bitcoin: orders, invoices, webhooks, a return page, polling.
//
// node shop.mjs       serves http://127.0.0.1:5000/
// node shop.mjs poll  looks once for orders that were paid

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { renameSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

for (const name of ["BLOCKTILL_URL", "BLOCKTILL_KEY", "WEBHOOK_SECRET"]) {
  if (!process.env[name]) {
    console.error(`${name} is not set: README.md says where its value is`);
    process.exit(1);
  }
}
const { BLOCKTILL_URL, BLOCKTILL_KEY, WEBHOOK_SECRET } = process.env;
const API = `${BLOCKTILL_URL}/api/v1`;
const SECRET = Buffer.from(WEBHOOK_SECRET.replace(/^whsec_/, ""), "base64");
const FOLDER = process.env.SHOP_FOLDER ?? "orders";
const PORT = Number(process.env.SHOP_PORT ?? "5000");
const MUG = { description: "A mug", amount_usd: 25, expires_in_hours: 1 };
const TOLERANCE_S = 300;
const MAX_BODY_BYTES = 65536;
const NUMBER = /^[0-9a-f]{32}$/;
const NAME = /^[A-Za-z0-9_]{1,64}$/;

// Returns the API's answer. A request with a body is a POST, and needs the key.
async function ask(path, body, idempotencyKey) {
  const headers = { Authorization: `Bearer ${BLOCKTILL_KEY}` };
  const options = { headers, signal: AbortSignal.timeout(20_000) };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    headers["Idempotency-Key"] = idempotencyKey;
    options.method = "POST";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(API + path, options);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

// This shop keeps its orders as files. In yours they are rows of a database.

// Returns what was saved under an order's number or an invoice's id, or null.
function load(name) {
  const file = `${FOLDER}/${name}`;
  if (!NAME.test(name) || !existsSync(file)) return null;
  return JSON.parse(readFileSync(file, "utf8"));
}

// Saves all of the value or, after a crash, nothing.
function save(name, value) {
  const draft = `${FOLDER}/${randomBytes(8).toString("hex")}.draft`;
  writeFileSync(draft, JSON.stringify(value));
  renameSync(draft, `${FOLDER}/${name}`);
}

// Returns the order with its invoice, the same one after a crash at any line.
async function placeOrder(number) {
  let order = load(number);
  if (order === null) {
    order = { number, wanted: MUG };
    save(number, order);
  }
  if (!order.pay_url) {
    const invoice = await ask("/invoices", order.wanted, number);
    save(invoice.id, { number });
    order.pay_url = invoice.pay_url;
    save(number, order);
  }
  return order;
}

// Returns the number of the order that has this invoice, or null.
function numberOf(invoiceId) {
  return load(invoiceId)?.number ?? null;
}

function isPaid(number) {
  return existsSync(`${FOLDER}/${number}.paid`);
}

// Notes the state. Of several calls at once, only one makes or removes the file.
function setPaid(number, paid) {
  const mark = `${FOLDER}/${number}.paid`;
  try {
    if (paid) writeFileSync(mark, "", { flag: "wx" });
    else unlinkSync(mark);
  } catch (error) {
    if (error.code === "EEXIST" || error.code === "ENOENT") return;
    throw error;
  }
  console.log(paid ? "deliver" : "hold back", number);
}

// True if the webhook comes from Blocktill, and is not an old one sent again.
function isSigned(headers, body) {
  const sentAt = headers["webhook-timestamp"] ?? "";
  const start = `${headers["webhook-id"] ?? ""}.${sentAt}.`;
  const digest = createHmac("sha256", SECRET).update(start).update(body).digest("base64");
  const theirs = (headers["webhook-signature"] ?? "").split(" ");
  if (!theirs.some((one) => isEqual(`v1,${digest}`, one))) return false;
  const ageS = Math.abs(Date.now() / 1000 - Number(sentAt));
  return ageS <= TOLERANCE_S;
}

// Returns the id of an event's invoice: "" if it has none, null if it is malformed.
function invoiceIdOf(body) {
  try {
    const { data } = JSON.parse(body);
    const id = "invoice" in data ? data.invoice.id : "";
    return typeof id === "string" ? id : null;
  } catch {
    return null;
  }
}

// Compares two texts in constant time.
function isEqual(one, other) {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function showForm() {
  const number = randomBytes(16).toString("hex");
  const button = `<button name="number" value="${number}">Buy a mug</button>`;
  return [200, `<form method="post">${button}</form>`];
}

async function buy(body) {
  const number = new URLSearchParams(body.toString()).get("number") ?? "";
  if (!NUMBER.test(number)) return [400, "Press the button of this shop."];
  const order = await placeOrder(number);
  return [303, "", { Location: order.pay_url }];
}

function showOrder(query) {
  const number = numberOf(query.get("invoice") ?? "");
  if (number === null) return [404, "There is no such order."];
  const state = isPaid(number) ? "paid" : "waiting for payment";
  return [200, `<p>Order ${number}: ${state}</p>`, { "Cache-Control": "no-store" }];
}

// Asks what is true now, so a webhook that comes late or twice does no harm.
async function receiveWebhook(headers, body) {
  if (!isSigned(headers, body)) return [401, ""];
  const invoiceId = invoiceIdOf(body);
  if (invoiceId === null) return [400, ""];
  const number = numberOf(invoiceId);
  if (number !== null) {
    const invoice = await ask(`/invoices/${invoiceId}`);
    setPaid(number, invoice.status === "paid");
  }
  return [204, ""];
}

// Finds what was paid while no webhook came. Run it every ten minutes, by cron.
async function poll() {
  const payments = await ask("/payments?limit=100");
  for (const payment of payments.data) {
    const number = numberOf(payment.invoice_id ?? "");
    if (number !== null) setPaid(number, true);
  }
}

async function readBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Error("the body is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function answer(request) {
  const url = new URL(request.url, "http://localhost");
  const body = await readBody(request);
  switch (`${request.method} ${url.pathname}`) {
    case "GET /":
      return showForm();
    case "POST /":
      return buy(body);
    case "GET /return":
      return showOrder(url.searchParams);
    case "POST /hooks":
      return receiveWebhook(request.headers, body);
    default:
      return [404, "There is no such page."];
  }
}

async function serve(request, response) {
  let [status, text, headers] = [500, "Try again in a minute.", {}];
  try {
    [status, text, headers] = await answer(request);
  } catch (error) {
    console.error(error);
  }
  response.writeHead(status, { "Content-Type": "text/html", ...headers });
  response.end(text);
}

mkdirSync(FOLDER, { recursive: true });
if (process.argv[2] === "poll") {
  await poll();
} else {
  createServer(serve).listen(PORT, "127.0.0.1");
}
