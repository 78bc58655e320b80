// What a command about a hub is in the tables of this folder, and how it becomes one of the command line.

import { type Command, Option, type OptionValues } from 'commander'
import { calledAs } from '../../../called-as.ts'
import { refuseWord } from '../../../command-words.ts'
import type { Act } from '../act.ts'
import { count, offset } from '../options.ts'

export interface Entry {
  /** `show <realm>` */
  usage: string
  does: string
  /** Arguments and options of a call that makes sense. */
  example: string
  options?: readonly Option[]
  /** The command that is meant when none is named. */
  isDefault?: boolean
  run(options: OptionValues, ...args: string[]): Promise<unknown>
}

/** Commands below a word. */
export interface Group {
  word: string
  does: string
  entries: readonly Entry[]
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
  option('--offset <number>', 'how many to pass over (0)').argParser(offset),
]

export function add(
  parent: Command,
  { usage, does, example, options = [], isDefault = false, run }: Entry,
  act: Act,
): void {
  const command = parent.command(usage, { isDefault }).description(does)
  if (!parent.parent) command.helpGroup(HELP_GROUP)
  for (const each of options) command.addOption(each)
  command.option('--hub <url>', 'the hub (CADRE_HUB_URL)').option('--json', 'print what the hub replied')
  const words = [parent.parent ? parent.name() : '', command.name(), example].filter(word => word !== '')
  command.addHelpText('after', `\nExample:\n  $ ${calledAs()} ${words.join(' ')}`)
  if (isDefault) command.allowExcessArguments()
  command.action(() => {
    if (isDefault && command.args.length > 0) refuse(parent, command.args)
    const args: string[] = command.processedArgs
    return act(() => run(command.optsWithGlobals(), ...args), args[0])
  })
}

/** As the command that is meant when none is named, it also receives words that are not commands. */
function refuse(group: Command, [word, ...more]: readonly string[]): never {
  const isName = more.length === 0 && group.commands.some(each => each.name() === 'show')
  refuseWord(group, word!, isName ? ` (did you mean \`${group.name()} show ${word}\`?)` : '')
}
