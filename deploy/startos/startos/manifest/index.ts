import { setupManifest } from '@start9labs/start-sdk'

export const manifest = setupManifest({
  id: 'blocktill',
  title: 'Blocktill',
  license: 'MIT',
  packageRepo: 'https://example.com/blocktill',
  upstreamRepo: 'https://example.com/blocktill',
  marketingUrl: 'https://example.com/blocktill',
  donationUrl: null,
  description: {
    short: 'Bitcoin payments for a small shop, straight to your wallet.',
    long:
      "Sell at a till on a phone, by payment links and bills, from a shop's plug-in, or from your " +
      'own program. Each order has a new address, derived from the public account key of your ' +
      'wallet: there is no private key here. Payments are read from the blocks of your own node.',
  },
  volumes: ['main'],
  images: {
    blocktill: {
      source: { dockerTag: 'example.com/blocktill:0.3.0' },
      arch: ['x86_64', 'aarch64'],
    },
  },
  dependencies: {
    bitcoind: {
      description: 'Its blocks show what was paid.',
      optional: false,
      s9pk: null,
    },
  },
})
