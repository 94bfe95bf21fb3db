// The settings of the shop. Nothing is imported here: a test starts the program with them.

export const port = 8000
export const folder = '/var/lib/blocktill' // of the image's user
export const user = '10001:10001'

/** Returns the variables. `node` is host:port of the Bitcoin node. */
export function environment(address: string, password: string, node: string) {
  return {
    BLOCKTILL_NETWORK: 'mainnet',
    BLOCKTILL_DATABASE_URL: `sqlite:///${folder}/mainnet.db`,
    BLOCKTILL_BASE_URL: address,
    BLOCKTILL_OWNER_PASSWORD: password,
    BLOCKTILL_PEERS: node,
    BLOCKTILL_EXPLORERS: 'none', // no stranger is asked about an address
    BLOCKTILL_BIND: `0.0.0.0:${port}`,
    BLOCKTILL_TRUSTED_PROXIES: '1',
    BLOCKTILL_VISITOR_ADDRESSES: 'off', // Tor and tunnels show one for all
  }
}
