import { addresses } from '../interfaces'
import { sdk } from '../sdk'
import { store } from '../store'

const { InputSpec, Value } = sdk

const input = InputSpec.of({
  address: Value.dynamicSelect(async ({ effects }) => ({
    name: 'Address',
    values: Object.fromEntries(
      (await addresses(effects)).map((address) => [address, address]),
    ),
    default: '',
  })),
})

export const chooseAddress = sdk.Action.withInput(
  'choose-address',
  {
    name: 'Choose the address',
    description: 'The one in all links that customers get, at which you open your pages too.',
    warning: 'Links that were sent before lead to the old address.',
    allowedStatuses: 'any',
    group: null,
    visibility: 'enabled',
  },
  input,
  async () => ({
    address: (await store.read((kept) => kept.address).once()) || undefined,
  }),
  async ({ effects, input }) => store.merge(effects, { address: input.address }),
)
