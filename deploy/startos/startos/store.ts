// What the package keeps of its own, beside the shop's data.
import { FileHelper, z } from '@start9labs/start-sdk'
import { sdk } from './sdk'

export const store = FileHelper.json(
  { base: sdk.volumes.main, subpath: './store.json' },
  z.object({
    password: z.string().catch(''),
    address: z.string().catch(''),
  }),
)
