// What a command about a hub is in the tables of this folder, and how it becomes one of the command line.

import { type Command, Option, type OptionValues } from 'commander'
import { calledAs } from '../../../program/called-as.ts'
import { examplesText, refuseWord } from '../../../text/command-words.ts'
import { homeFolder } from '../../home/home.ts'
import type { HubClient } from '../../link/link.ts'
import type { Act } from '../kit/act.ts'
import { count, offset } from '../kit/options.ts'

/** How a command is declared: `show <realm>`, what it does, arguments and options of a call that makes sense, and more. */
export type Words<More> = [usage: string, does: string, example: string, more: More]

/** `run` calls the hub as the person who is signed in; `alone` decides itself whom it calls. */
type Doing = { options?: readonly Option[] } & (
  | { run(hub: HubClient, options: OptionValues, ...args: string[]): Promise<unknown> }
  | { alone(options: OptionValues, ...args: string[]): Promise<unknown> }
)

export type Entry = Doing & { usage: string; does: string; example: string }

/** A command. Most of those that call a hub have one of the forms of forms.ts. */
export function doing(...[usage, does, example, more]: Words<Doing>): Entry {
  return { usage, does, example, ...more }
}

/** Under which `--help` lists them. */
export const HELP_GROUP = 'At a hub:'

export const option = (flags: string, does: string) => new Option(flags, does)
export const inOrg = option('--org <org>', 'slug or number; not needed if you have one')
export const inRealm = option('--realm <realm>', 'slug, name or id; not needed if you have one')
export const named = option('--name <name>', 'the name that people see')
export const yes = option('--yes', 'do it without being asked')
export const page = [
  option('--limit <number>', 'how many (20)').argParser(count),
  option('--offset <number>', 'how many to skip (0)').argParser(offset),
]

/** Adds a command. `isDefault` is that which is meant when none is named. */
export function add(parent: Command, entry: Entry, act: Act, isDefault = false): void {
  const { usage, does, example, options = [] } = entry
  const command = parent.command(usage, { isDefault }).description(isDefault ? `${does} (default)` : does)
  if (!parent.parent) command.helpGroup(HELP_GROUP)
  for (const each of options) command.addOption(each)
  command.option('--hub <url>', 'the hub (CADRE_HUB_URL)').option('--json', 'print what the hub replied')
  const words = [parent.parent ? parent.name() : '', command.name(), example].filter(word => word !== '')
  command.addHelpText('after', examplesText(calledAs(), [words.join(' ')]))
  if (isDefault) command.allowExcessArguments()
  command.action(() => {
    if (isDefault && command.args.length > 0) refuse(parent, command.args)
    const args: string[] = command.processedArgs
    return act(() => perform(entry, command.optsWithGlobals(), args), args[0])
  })
}

/** What calls a hub is loaded now, because `--help` and completion need only words. */
async function perform(entry: Entry, options: OptionValues, args: readonly string[]): Promise<unknown> {
  if ('alone' in entry) return entry.alone(options, ...args)
  const { hubOf } = await import('../kit/hub-client.ts')
  return entry.run(await hubOf(homeFolder(options.home), options), options, ...args)
}

/** As the command that is meant when none is named, it also receives words that are not commands. */
function refuse(group: Command, [word, ...more]: readonly string[]): never {
  const isName = more.length === 0 && group.commands.some(each => each.name() === 'show')
  refuseWord(group, word!, isName ? ` (did you mean \`${group.name()} show ${word}\`?)` : '')
}
