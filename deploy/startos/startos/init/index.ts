import { actions } from '../actions'
import { restoreInit } from '../backups'
import { setDependencies } from '../dependencies'
import { setInterfaces } from '../interfaces'
import { sdk } from '../sdk'
import { versions } from '../versions'
import { keepAddress } from './address'
import { makePassword } from './password'

export const init = sdk.setupInit(
  restoreInit,
  versions,
  makePassword,
  setInterfaces,
  setDependencies,
  actions,
  keepAddress,
)

export const uninit = sdk.setupUninit(versions)
