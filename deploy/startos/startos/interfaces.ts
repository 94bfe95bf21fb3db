import { T } from '@start9labs/start-sdk'
import { port } from './environment'
import { sdk } from './sdk'

const hostId = 'main'
const interfaceId = 'shop'

export const setInterfaces = sdk.setupInterfaces(async ({ effects }) => {
  const origin = await sdk.MultiHost.of(effects, hostId).bindPort(port, {
    protocol: 'http',
  })
  const shop = sdk.createInterface(effects, {
    name: 'Shop',
    id: interfaceId,
    description: "Your customers' pages, your own, and the API",
    type: 'ui',
    masked: false,
    schemeOverride: null,
    username: null,
    path: '',
    query: {},
  })
  return [await origin.export([shop])]
})

/** Returns the addresses at which browsers reach the shop. */
export const addresses = (effects: T.Effects): Promise<string[]> =>
  sdk.host
    .getOwn(effects, hostId, (host) => {
      const interfaces = Object.values(host?.bindings ?? {}).flatMap((binding) =>
        Object.values(binding.interfaces),
      )
      const shop = interfaces.find((one) => one.id === interfaceId)
      return shop ? shop.addressInfo.nonLocal.format() : []
    })
    .const()
