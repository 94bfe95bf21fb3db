// Tests the shop: blocktill sandbox --once -- node test.mjs

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHmac, randomBytes, randomInt } from "node:crypto";
import { appendFileSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { rmSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const SANDBOX = process.env.BLOCKTILL_SANDBOX_URL;
const SHOP = fileURLToPath(new URL("shop.mjs", import.meta.url));
const PATIENCE_MS = 120_000;
const MALFORMED = [
  ...["", "no JSON", "null", "[]", "{}", '{"data": null}', '{"data": {"invoice": 5}}'],
  ...['{"data": {"invoice": {}}}', '{"data": {"invoice": {"id": 5}}}'],
];
const run = promisify(execFile);

let url, folder, log, hookId, secret, environ, shop;

// Returns the answer, by a connection of its own. With a body it is a POST.
function send(address, body, moreHeaders = {}) {
  const headers = { Connection: "close", ...moreHeaders };
  const method = body === undefined ? "GET" : "POST";
  const signal = AbortSignal.timeout(30_000);
  return fetch(address, { method, body, headers, signal, redirect: "manual" });
}

// Presses a button of the sandbox's workbench.
async function press(button, fields = {}) {
  const accept = { Accept: "application/json" };
  const answer = await send(`${SANDBOX}/sandbox/${button}`, new URLSearchParams(fields), accept);
  assert.equal(answer.status, 200, await answer.text());
}

async function until(condition) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, "it took too long");
    await sleep(500);
  }
}

async function blocktill(...words) {
  return (await run("blocktill", words)).stdout;
}

function newNumber() {
  return randomBytes(16).toString("hex");
}

// Ports below those that the system gives to outgoing connections: one of these could be
// taken again before the shop listens on it.
function freePort() {
  return new Promise((resolve) => {
    const port = randomInt(20_000, 30_000);
    const probe = createServer();
    probe.once("error", () => resolve(freePort())); // somebody listens there
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(port)));
  });
}

async function answers() {
  assert.equal(shop.exitCode, null, readFileSync(log, "utf8"));
  try {
    return (await send(`${url}/`)).ok;
  } catch {
    return false;
  }
}

before(async () => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  folder = mkdtempSync(`${tmpdir()}/shop-`);
  log = `${folder}/log`;
  const hook = JSON.parse(await blocktill("webhook", "add", "demo", `${url}/hooks`, "--json"));
  hookId = hook.id;
  secret = Buffer.from(hook.secret.replace(/^whsec_/, ""), "base64");
  environ = {
    ...process.env,
    WEBHOOK_SECRET: hook.secret,
    SHOP_FOLDER: `${folder}/orders`,
    SHOP_PORT: String(port),
  };
  const out = openSync(log, "a");
  shop = spawn(process.execPath, [SHOP], { env: environ, stdio: ["ignore", out, out] });
  await until(answers);
});

after(() => {
  shop?.kill();
  if (folder) rmSync(folder, { recursive: true });
});

// Presses the shop's button. Returns the id of the invoice that it leads to.
async function buy(number) {
  const answer = await send(`${url}/`, new URLSearchParams({ number }));
  assert.equal(answer.status, 303);
  return answer.headers.get("location").split("/pay/")[1];
}

async function returnPage(invoice) {
  return (await send(`${url}/return?invoice=${invoice}`)).text();
}

// Returns what the shop has logged of this order.
function delivered(number) {
  const lines = readFileSync(log, "utf8").matchAll(`(deliver|hold back) ${number}`);
  return [...lines].map((line) => line[1]);
}

// Sends a webhook about an invoice. Returns the status of the answer.
function hook(invoice, changes) {
  const event = { type: "invoice.paid", data: { invoice: { id: invoice } } };
  return sendSigned(JSON.stringify(event), changes);
}

// Sends a webhook with a signature. Returns the status of the answer.
async function sendSigned(body, changes = {}) {
  const { key = secret, ageS = 0, eventId = "evt_1", ...more } = changes;
  const sentAt = String(Math.floor(Date.now() / 1000) - ageS);
  const digest = createHmac("sha256", key).update(`evt_1.${sentAt}.${body}`).digest("base64");
  const headers = {
    "Content-Type": "application/json",
    "webhook-id": eventId,
    "webhook-timestamp": sentAt,
    "webhook-signature": `v1,${digest}`,
    ...more,
  };
  return (await send(`${url}/hooks`, body, headers)).status;
}

test("an order is paid and delivered once", async () => {
  const number = newNumber();
  const invoice = await buy(number);
  assert.equal(await buy(number), invoice);
  assert.match(await returnPage(invoice), /waiting/);
  assert.equal(await hook(invoice), 204);
  assert.deepEqual(delivered(number), []);
  await press("pay", { invoice });
  await press("mine");
  await until(() => delivered(number).join() === "deliver");
  assert.match(await returnPage(invoice), /paid/);
  assert.deepEqual([await hook(invoice), await hook(invoice)], [204, 204]);
  assert.deepEqual(delivered(number), ["deliver"]);
  await press("reorganise", { double_spend: 1 });
  await until(() => delivered(number).join() === "deliver,hold back");
  assert.match(await returnPage(invoice), /waiting/);
});

test("a crash before the invoice was saved changes nothing", async () => {
  const number = newNumber();
  const invoice = await buy(number);
  const file = `${folder}/orders/${number}`;
  const order = JSON.parse(readFileSync(file, "utf8"));
  delete order.pay_url;
  writeFileSync(file, JSON.stringify(order));
  unlinkSync(`${folder}/orders/${invoice}`);
  assert.equal(await buy(number), invoice);
  assert.match(await returnPage(invoice), /waiting/);
  assert.notEqual(await buy(newNumber()), invoice);
});

test("a forged webhook is refused", async () => {
  const invoice = await buy(newNumber());
  assert.equal(await hook(invoice, { ageS: 240 }), 204);
  assert.equal(await hook(invoice, { key: "another" }), 401);
  assert.equal(await hook(invoice, { ageS: 301 }), 401);
  assert.equal(await hook(invoice, { ageS: -400 }), 401);
  assert.equal(await hook(invoice, { eventId: "evt_2" }), 401);
  assert.equal(await hook(invoice, { "webhook-timestamp": "1" }), 401);
  assert.equal(await hook(invoice, { "webhook-signature": "" }), 401);
  assert.equal(await hook(invoice, { "webhook-signature": "v1a,abc" }), 401);
});

test("nonsense is refused, and a test event accepted", async () => {
  for (const text of MALFORMED) assert.equal(await sendSigned(text), 400, text);
  assert.equal(await sendSigned('{"data": {"bill": {}}}'), 204);
  const order = await send(`${url}/`, new URLSearchParams({ number: "../secret" }));
  assert.equal(order.status, 400);
  assert.equal((await send(`${url}/return?invoice=../log`)).status, 404);
  await blocktill("webhook", "test", hookId);
});

test("polling finds what no webhook told", async () => {
  await blocktill("webhook", "remove", hookId);
  const number = newNumber();
  const invoice = await buy(number);
  await press("pay", { invoice });
  await press("mine");
  const isFound = async () => {
    const { stdout } = await run(process.execPath, [SHOP, "poll"], { env: environ });
    appendFileSync(log, stdout);
    return /paid/.test(await returnPage(invoice));
  };
  await until(isFound);
  assert.ok(await isFound());
  assert.deepEqual(delivered(number), ["deliver"]);
});
