import { environment, folder, port, user } from './environment'
import { sdk } from './sdk'
import { store } from './store'

// Where the node listens for other services of this machine, and trusts them.
const node = { packageId: 'bitcoind', hostId: 'peer-local', internalPort: 58334 }

export const main = sdk.setupMain(async ({ effects }) => {
  const kept = await store.read().const(effects)
  if (!kept?.address) throw new Error('No address yet: run "Choose the address"')
  const place = await sdk.host.getBridgeAddress(effects, node).const()
  if (!place) throw new Error('Bitcoin is not installed, or has not started yet')

  const subcontainer = sdk.SubContainer.of(
    effects,
    { imageId: 'blocktill' },
    sdk.Mounts.of().mountVolume({
      volumeId: 'main',
      subpath: 'shop',
      mountpoint: folder,
      readonly: false,
    }),
    'shop',
  )
  return sdk.Daemons.of(effects)
    .addOneshot('own-folder', {
      subcontainer,
      exec: { command: ['chown', '-R', user, folder], user: 'root' },
      requires: [],
    })
    .addDaemon('shop', {
      subcontainer,
      exec: {
        command: sdk.useEntrypoint(),
        env: environment(kept.address, kept.password, place),
        sigtermTimeout: 40_000,
      },
      ready: {
        display: 'Pages',
        gracePeriod: 30_000,
        fn: () =>
          sdk.healthCheck.checkPortListening(effects, port, {
            successMessage: 'The pages are served',
            errorMessage: 'The pages are not served',
          }),
      },
      requires: ['own-folder'],
    })
    .addHealthCheck('payments', {
      ready: { display: 'Payments', gracePeriod: 120_000, fn: paymentsAreFound },
      requires: ['shop'],
    })
})

async function paymentsAreFound() {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`)
  return answer.ok
    ? ({ result: 'success', message: 'Payments are found' } as const)
    : ({ result: 'loading', message: 'Not every block is read yet' } as const)
}
