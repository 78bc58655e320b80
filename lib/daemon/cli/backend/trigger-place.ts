// Where the commands of triggers act: on a home, or in a realm of a hub. Both answer the same calls; a hub is told the
// realm with each.

import { commandLine } from '../../../program/called-as.ts'
import { homeFolder } from '../../home/home.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { hubOf } from '../kit/hub-client.ts'
import type { Callee } from './home-client.ts'
import { askAboutTriggers, changeTriggers, isServed } from './trigger-answers.ts'
import type { Ask } from './typed-ids.ts'

export interface PlaceOptions {
  home?: string
  realm?: string
  hub?: string | true
}

export interface TriggerPlace {
  home: string
  /** The hub of the realm; null on a home. */
  hub: HubClient | null
  ask: Ask
  /** The same for what changes something, and for what a home has sealed. */
  change: Ask
  /** Whether nothing looks at the triggers now. */
  isIdle(): boolean
  /** A command of this program, for the same place. */
  command(...args: string[]): string
}

export async function triggerPlaceOf({ home: given, realm, hub }: PlaceOptions): Promise<TriggerPlace> {
  const home = homeFolder(given)
  if (realm !== undefined || hub !== undefined) return realmPlace(home, realm, hub)
  return {
    home,
    hub: null,
    ask: work => askAboutTriggers(home, work),
    change: work => changeTriggers(home, work),
    isIdle: () => !isServed(home),
    command: commandLine,
  }
}

async function realmPlace(home: string, realm: string | undefined, url: string | true = true): Promise<TriggerPlace> {
  const hub = await hubOf(home, url === true ? {} : { hub: url })
  // What finds realms is loaded only for them.
  const { realmIdOf } = await import('../kit/names.ts')
  const realm_id = await realmIdOf(hub, realm)
  const callee: Callee = { call: (call, body) => hub.call(call, Object.assign({}, body, { realm_id })) }
  const ask: Ask = work => work(callee)
  const flags = ['--realm', realm ?? realm_id, ...(url === true ? [] : ['--hub', url])]
  return { home, hub, ask, change: ask, isIdle: () => false, command: (...args) => commandLine(...args, ...flags) }
}
