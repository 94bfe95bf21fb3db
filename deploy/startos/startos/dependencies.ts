import { sdk } from './sdk'

export const setDependencies = sdk.setupDependencies(async () => ({
  bitcoind: {
    kind: 'running',
    versionRange: '>=28.4:17', // the first that listens for other services
    healthChecks: ['bitcoind'],
  },
}))
