import { sdk } from '../sdk'
import { store } from '../store'

export const showPassword = sdk.Action.withoutInput(
  'show-password',
  {
    name: "Show the owner's password",
    description: "It opens the first run and your pages.",
    warning: null,
    allowedStatuses: 'any',
    group: null,
    visibility: 'enabled',
  },
  async () => ({
    version: '1',
    title: "The owner's password",
    message: null,
    result: {
      type: 'single',
      value: (await store.read((kept) => kept.password).once()) ?? '',
      copyable: true,
      qr: false,
      masked: true,
    },
  }),
)
