// The hosts by which hooks may be called.

import { CadreError } from '../error.ts'

const HOST = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/

/** Reads `CADRE_HOOK_HOSTS`: the names of hosts by which hooks may be called, separated by commas. */
export function hookHostsFrom(value: string | undefined): string[] {
  const names = (value ?? '').toLowerCase().split(',')
  const given = names.map(name => name.trim()).filter(name => name !== '')
  const wrong = given.find(name => !HOST.test(name))
  if (wrong === undefined) return given
  throw new CadreError('invalid_request', `CADRE_HOOK_HOSTS: ${wrong} is not the name of a host`)
}
