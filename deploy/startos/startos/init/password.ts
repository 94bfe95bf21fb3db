import { utils } from '@start9labs/start-sdk'
import { showPassword } from '../actions/password'
import { sdk } from '../sdk'
import { store } from '../store'

export const makePassword = sdk.setupOnInit(async (effects, kind) => {
  if (kind !== 'install') return
  const password = utils.getDefaultString({ charset: 'a-z,A-Z,0-9', len: 24 })
  await store.merge(effects, { password })
  await sdk.action.createOwnTask(effects, showPassword, 'important', {
    reason: 'It makes your shop, and opens its pages.',
  })
})
