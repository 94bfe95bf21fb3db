// Proves payments in the payer's own browser, from the documents on the page: nobody is asked.
// It refuses what btcpay/proofs/verify.py refuses, and what the page says otherwise than a document.
const FORMAT = "btcpay payment proof 1";
const MAX_BRANCH = 24, NODE_BYTES = 64, HEADER_BYTES = 80;
const NO_OUTPOINT = "00".repeat(32) + "ffffffff";
const BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
// Its message names the sentence of the page that says what is wrong.
class Flaw extends Error {}
const need = (holds, flaw) => { if (!holds) throw new Flaw(flaw); };

const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytesOf = (hex) => {
  need(typeof hex === "string" && hex.length % 2 === 0 && !/[^0-9a-f]/i.test(hex), "unreadable");
  return Uint8Array.from(hex.match(/../g) || [], (pair) => parseInt(pair, 16));
};
const joined = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const hash256 = async (bytes) => sha256(await sha256(bytes));
const reversedHex = (hash) => hexOf(hash.slice().reverse()); // hashes are written backwards

// The output script that an address stands for: bech32 (BIP173, BIP350), else base58 with a checksum.
export const scriptOf = (address) => {
  const [hrp, data] = address.split("1");
  if (["bc", "tb", "bcrt"].includes(hrp)) {
    const [version, ...rest] = Array.from(data.slice(0, -6), (one) => BECH32.indexOf(one));
    const bits = rest.map((five) => five.toString(2).padStart(5, "0")).join("");
    const program = hexOf(bits.match(/.{8}/g).map((eight) => parseInt(eight, 2)));
    return hexOf([version && 0x50 + version, program.length / 2]) + program;
  }
  const number = [...address].reduce((sum, one) => 58n * sum + BigInt(BASE58.indexOf(one)), 0n);
  const hash = number.toString(16).padStart(50, "0").slice(0, 42);
  return /^(05|c4)/.test(hash) ? `a914${hash.slice(2)}87` : `76a914${hash.slice(2)}88ac`;
};

// A transaction: its id commits to it without its witness (BIP144), which is read over.
const readTx = async (hex) => {
  const raw = bytesOf(hex);
  let at = 0;
  const take = (size) => {
    need(size <= raw.length - at, "unreadable");
    at += size;
    return raw.subarray(at - size, at);
  };
  // Exact below 2**53, which is more than all satoshis.
  const number = (size) => take(size).reduceRight((sum, byte) => 256 * sum + byte, 0);
  const compact = () => {
    const first = number(1);
    if (first < 0xfd) return first;
    const size = 2 ** (first - 0xfc), value = number(size);
    need(value >= (size === 2 ? 0xfd : 2 ** (4 * size)), "unreadable"); // its shortest form
    return value;
  };
  const list = (read) => {
    const items = [];
    for (let left = compact(); left > 0; left -= 1) items.push(read());
    return items;
  };
  const version = take(4), hasWitness = raw[at] === 0 && raw[at + 1] === 1;
  if (hasWitness) take(2);
  const start = at;
  const inputs = list(() => ({ outpoint: hexOf(take(36)), rest: take(compact() + 4) })); // script, sequence
  const outputs = list(() => ({ sats: number(8), script: hexOf(take(compact())) }));
  const body = raw.subarray(start, at);
  const witnesses = hasWitness ? inputs.map(() => list(() => take(compact())).length) : [1];
  need(witnesses.some(Boolean), "unreadable");
  const stripped = joined(version, body, take(4));
  need(at === raw.length, "unreadable");
  return { id: await hash256(stripped), size: stripped.length, inputs, outputs };
};

// The number that a header's hash must not exceed: Bitcoin Core's arith_uint256::SetCompact.
const targetOf = (bits) => {
  const size = bits >>> 24, mantissa = BigInt(bits & 0x7fffff);
  const target = size <= 3 ? mantissa >> BigInt(8 * (3 - size)) : mantissa << BigInt(8 * (size - 3));
  return bits & 0x800000 || target >> 256n ? 0n : target;
};
const readHeader = async (hex) => {
  const raw = bytesOf(hex);
  need(raw.length === HEADER_BYTES, "unreadable");
  const target = targetOf(new DataView(raw.buffer).getUint32(72, true));
  const previous = reversedHex(raw.subarray(4, 36)), root = reversedHex(raw.subarray(36, 68));
  return { hash: reversedHex(await hash256(raw)), previous, root, target };
};

// From a transaction to the root in the header: its siblings in the tree, from the leaves up.
const climb = async ({ position, merkle }, tx, root, flaw) => {
  const isInTree = position >= 0 && position < 2 ** merkle.length && merkle.length <= MAX_BRANCH;
  need(isInTree && tx.size !== NODE_BYTES, flaw); // CVE-2017-12842
  let node = tx.id;
  for (const [level, sibling] of merkle.entries()) {
    const other = bytesOf(sibling).reverse();
    need(other.length === 32, "unreadable");
    node = await hash256((position >> level) & 1 ? joined(other, node) : joined(node, other));
  }
  need(reversedHex(node) === root, flaw);
};

const read = (text) => {
  let it;
  try { it = JSON.parse(text); } catch { throw new Flaw("unreadable"); }
  const isBranch = (one) => Array.isArray(one?.merkle) && Number.isInteger(one.position);
  const hasParts = isBranch(it?.payment) && isBranch(it.coinbase) && Array.isArray(it.headers);
  need(hasParts && it.format === FORMAT && Number.isInteger(it.confirmations), "unreadable");
  return it;
};

// Resolves where the document proves what the page says of the payment, else rejects with a Flaw.
export const prove = async (text, { network, floor, address, txid, block, sats }) => {
  const it = read(text);
  need(it.network === network && it.txid === txid, "another");
  const script = scriptOf(address);
  need(hexOf(bytesOf(it.script)) === script, "another");
  const [payment, coinbase] = [await readTx(it.payment.raw_tx), await readTx(it.coinbase.raw_tx)];
  const headers = await Promise.all(it.headers.map(readHeader));
  need(reversedHex(payment.id) === txid, "id");
  need(headers[0]?.hash === block, "block");
  const easiest = targetOf(Number(floor));
  need(headers.every(({ hash, target }) => target <= easiest && BigInt(`0x${hash}`) <= target), "work");
  const follow = headers.every(({ previous }, n) => n === 0 || previous === headers[n - 1].hash);
  need(follow && headers.length === it.confirmations, "headers");
  await climb(it.payment, payment, headers[0].root, "branch");
  const spent = coinbase.inputs.map(({ outpoint }) => outpoint).join();
  need(spent === NO_OUTPOINT && it.coinbase.position === 0, "coinbase");
  await climb(it.coinbase, coinbase, headers[0].root, "coinbase");
  need(it.payment.merkle.length === it.coinbase.merkle.length, "branch");
  const sum = payment.outputs.reduce((sats, one) => sats + (one.script === script ? one.sats : 0), 0);
  need(sum > 0 && sum === Number(sats), "sum");
};

// The page: each payment gets its verdict, in the page's words.
const find = (id) => document.getElementById(id);
const judge = async (it) => {
  const text = it.querySelector("pre").textContent, verdict = it.querySelector(".verdict");
  let flaw;
  await prove(text, { ...find("main").dataset, ...it.dataset }).catch((error) => {
    if (!(error instanceof Flaw)) throw error;
    flaw = error.message;
  });
  const textContent = find(flaw ? `flaw-${flaw}` : "holds").textContent;
  Object.assign(verdict, { textContent, className: `verdict ${flaw ? "problem" : "holds"}`, hidden: false });
  return { flaw, sentence: textContent };
};
find("check").addEventListener("click", async () => {
  const verdicts = await Promise.all([...document.querySelectorAll("[data-txid]")].map(judge));
  find("checks").classList.toggle("done", verdicts.every(({ flaw }) => !flaw));
  find("announce").textContent = verdicts.map(({ sentence }) => sentence).join(" ");
});
// Browsers have it behind https and on localhost.
find(globalThis.crypto?.subtle ? "check" : "insecure").hidden = false;
