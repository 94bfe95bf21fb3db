import { sdk } from '../sdk'
import { chooseAddress } from './address'
import { showPassword } from './password'

export const actions = sdk.Actions.of()
  .addAction(showPassword)
  .addAction(chooseAddress)
