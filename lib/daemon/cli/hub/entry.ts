// What the tables of this folder say of a command about a hub.

import type { OptionValues } from 'commander'
import { homeFolder } from '../../home/home.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { count, offset } from '../kit/options.ts'

/** How a command is declared: `show <realm>`, what it does, arguments and options of a call that makes sense, and more. */
export type Words<More> = [usage: string, does: string, example: string, more: More]

/** `run` calls the hub as the person who is signed in; `alone` decides itself whom it calls. */
type Doing = Pick<Entry, 'more' | 'options'> &
  (
    | { run(hub: HubClient, options: OptionValues, ...args: string[]): Promise<unknown> }
    | { alone(options: OptionValues, ...args: string[]): Promise<unknown> }
  )

const ofHub = [
  option('--hub <url>', 'the address of the hub (CADRE_HUB_URL, else the one of login)'),
  option('--json', 'print what the hub replied'),
]

/** A command. Most of those that call a hub have one of the forms of forms.ts. */
export function doing(...[usage, does, example, { more, options = [], ...doing }]: Words<Doing>): Entry {
  const run =
    'alone' in doing
      ? doing.alone
      : async (given: OptionValues, ...args: string[]) => {
          // What calls a hub is loaded now, because `--help` and completion need only words.
          const { hubOf } = await import('../kit/hub-client.ts')
          return doing.run(await hubOf(homeFolder(given.home), given), given, ...args)
        }
  return { usage, does, more, examples: [[example]], options: [...options, ...ofHub], run }
}

export const inOrg = option('--org <org>', 'slug or number; not needed if you have only one')
export const inRealm = option('--realm <realm>', 'slug, name or id; not needed if you have only one')
export const named = option('--name <name>', 'the name that people see')
export const yes = option('--yes', 'do it without asking')
export const page = [
  option('--limit <number>', 'how many, from 1 to 100 (20)', count),
  option('--offset <number>', 'how many to skip (0)', offset),
]
