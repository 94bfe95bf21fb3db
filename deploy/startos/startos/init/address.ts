import { addresses } from '../interfaces'
import { sdk } from '../sdk'
import { store } from '../store'

// Of the addresses that there are, the one in the network of the house, until another is chosen.
export const keepAddress = sdk.setupOnInit(async (effects) => {
  const known = await addresses(effects)
  const chosen = await store.read((kept) => kept.address).const(effects)
  if (chosen && known.includes(chosen)) return
  const near = known.filter((address) => new URL(address).hostname.endsWith('.local'))
  const address = near.find((one) => one.startsWith('https:')) ?? near[0]
  if (address) await store.merge(effects, { address }, { allowWriteAfterConst: true })
})
