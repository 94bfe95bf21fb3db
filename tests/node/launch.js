// A full node on regtest for the tests. Prints {"url": ...} when it is ready; ends on SIGTERM and
// when its standard input closes, so that it never outlives the test that started it.
'use strict';

process.env.NODE_BACKEND = 'js'; // before the first require: nothing compiled is installed

const {regtest} = require('bcoin/lib/protocol/networks');

// bcoin's regtest made Bitcoin Core's: prefixes, and every soft fork up to segwit from block 1.
Object.assign(regtest.addressPrefix, {pubkeyhash: 0x6f, scripthash: 0xc4, bech32: 'bcrt'});
Object.assign(regtest.keyPrefix, {privkey: 0xef, xpubkey: 0x043587cf, xprivkey: 0x04358394});
Object.assign(regtest.keyPrefix, {xpubkey58: 'tpub', xprivkey58: 'tprv'});
Object.assign(regtest.block, {bip34height: 1, bip65height: 1, bip66height: 1});

const Chain = require('bcoin/lib/blockchain/chain');
const {thresholdStates} = require('bcoin/lib/blockchain/common');
const {csv, segwit} = regtest.deployments;
const bip9 = Chain.prototype.getState;
Chain.prototype.getState = async function(prev, deployment) {
  const always = deployment === csv || deployment === segwit;
  return always ? thresholdStates.ACTIVE : bip9.call(this, prev, deployment);
};

// Bitcoin Core dropped free transactions for old coins in 0.15.
require('bcoin/lib/mempool/mempoolentry').prototype.isFree = () => false;

const FullNode = require('bcoin/lib/node/fullnode');
const TX = require('bcoin/lib/primitives/tx');
const Script = require('bcoin/lib/script/script');
const {revHex} = require('bcoin/lib/utils/util');

const node = new FullNode({
  network: 'regtest',
  memory: true,
  workers: false,
  indexTX: true,
  indexAddress: true,
  listen: true,
  host: '127.0.0.1',
  httpHost: '127.0.0.1',
  httpPort: 0, // any that is free
  noAuth: true,
  requireStandard: true,
  replaceByFee: true // takes in what signals; replaces nothing
});
node.pool.forceSync = () => {}; // there are no peers
node.pool.broadcast = async () => {};
node.pool.options.port = 0; // any that is free
node.pool.server.on('listening', () => {
  node.peerPort = node.pool.server.address().port;
});
node.mempool.options.maxOrphans = 0;

// What the RPC of Bitcoin Core says and bcoin's does not: a verdict, the history of a script, its
// coins; and what happens in other nodes' mempools.
node.rpc.add('trytransaction', async ([hex]) => {
  try {
    const tx = TX.fromRaw(hex, 'hex');
    const missing = await node.mempool.addTX(tx);
    return {txid: tx.txid(), reason: missing ? 'bad-txns-inputs-missingorspent' : null};
  } catch (err) {
    return {reason: err.type === 'VerifyError' ? err.reason : `undecodable: ${err.message}`};
  }
});

node.rpc.add('droptransaction', async ([txid]) => {
  const entry = node.mempool.getEntry(revHex(txid));
  if (entry)
    node.mempool.evictEntry(entry);
  return Boolean(entry);
});

node.rpc.add('gethistory', async ([hex]) => {
  const address = Script.fromRaw(hex, 'hex').getAddress();
  const metas = address ? await node.getMetaByAddress([address]) : [];
  const waiting = metas.filter(meta => meta.height === -1);
  const confirmed = metas.filter(meta => meta.height !== -1);
  confirmed.sort((a, b) => a.height - b.height || a.index - b.index);
  return [...confirmed, ...waiting].map(({tx, height}) => ({hex: tx.toRaw().toString('hex'), height}));
});

node.rpc.add('getcoins', async ([hex]) => {
  const address = Script.fromRaw(hex, 'hex').getAddress();
  const coins = address ? await node.getCoinsByAddress([address]) : [];
  return coins.filter(coin => coin.script.toRaw().toString('hex') === hex).map(coin => ({
    txid: revHex(coin.hash),
    vout: coin.index,
    value: coin.value,
    height: coin.height,
    coinbase: coin.coinbase
  }));
});

async function stop() {
  await node.close();
  process.exit(0);
}

(async () => {
  await node.open();
  await node.pool.listen(); // and connects to nobody
  const {port} = node.http.http.address();
  process.stdout.write(JSON.stringify({url: `http://127.0.0.1:${port}/`, peer: `127.0.0.1:${node.peerPort}`}) + '\n');
  process.stdin.resume().on('end', stop);
  process.on('SIGTERM', stop);
})().catch((err) => {
  console.error(err);
  process.exit(1);
});
