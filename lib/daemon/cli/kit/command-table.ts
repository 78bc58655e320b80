// What a command is in the tables of the command line: its words, its options, calls that make sense, and what it does.
// `--help` and completion read them from the commands that are made of it.

import { type Command, Option, type OptionValues } from 'commander'
import { calledAs } from '../../../program/called-as.ts'
import { examplesText, refuseWord } from '../../../text/command-words.ts'
import { hubAddressIn } from './options.ts'

export interface Entry {
  /** The command with its arguments, as commander reads them: `show <run>`. */
  usage: string
  /** In one line, which lists of commands show. */
  does: string
  /** What its own `--help` says beyond that, in whole sentences. */
  more?: string | undefined
  /** The arguments and options of calls that make sense, and what a call does where that is not plain. */
  examples?: readonly (readonly [args: string, does?: string])[]
  options?: readonly Option[]
  /** The commands below this one. */
  below?: readonly Entry[]
  /** This is the command that is meant when only the word above it is given. */
  isDefault?: true
  hidden?: true
  /** The heading under which `--help` lists it. */
  heading?: string
  /** Does it. A number is the exit code. Imports what it needs, so that `cadre run` loads nothing for other commands. */
  run?(options: OptionValues, ...args: string[]): Promise<unknown>
}

/** The headings under which `--help` lists the commands. */
export const HEADINGS = {
  runs: 'Run teams and look at runs:',
  triggers: 'What starts runs by itself:',
  teams: 'Write teams and agents:',
  machine: 'This machine:',
  hub: 'A hub, to work with other people and machines:',
} as const

export const under = (heading: string, entries: readonly Entry[]): Entry[] =>
  entries.map(each => ({ ...each, heading }))

/** Runs the work of a command, and sets the exit code. `path` is the team that the command was given. */
export type Act = (work: () => Promise<unknown>, path?: string) => Promise<void>

export function option<T>(flags: string, does: string, parse?: (text: string, before: T) => T): Option {
  const made = new Option(flags, does)
  return parse ? made.argParser(parse) : made
}
export const json = option('--json', 'print JSON')
export const inWorkspace = option(
  '--workspace <folder>',
  'where to work: a folder, or the name of a workspace (default: here)',
)
export const inEnvironment = option('--env <name>', 'an environment of settings.yml, such as staging')
export const ofHub = (does: string): Option => option('--hub [url]', does, hubAddressIn)

export function addCommands(parent: Command, entries: readonly Entry[], act: Act): void {
  for (const entry of entries) {
    const {
      usage,
      does,
      more,
      examples,
      options = [],
      below = [],
      isDefault = false,
      hidden = false,
      heading,
      run,
    } = entry
    const command = parent.command(usage, { isDefault, hidden }).summary(isDefault ? `${does} (default)` : does)
    command.description(more === undefined ? command.summary() : `${does}\n\n${more}`)
    if (heading !== undefined) command.helpGroup(heading)
    for (const each of options) command.addOption(each)
    // A command that is meant when none is named also receives words that are not commands.
    const group = isDefault ? parent : run && below.length > 0 ? command : null
    command.allowExcessArguments(group !== null)
    if (run) {
      command.action(() => {
        if (group && command.args.length > 0) refuse(group, command.args)
        const args: string[] = command.processedArgs
        return act(() => run(command.optsWithGlobals(), ...args), args[0])
      })
    }
    addCommands(command, below, act)
    if (examples) command.addHelpText('after', () => helpOf(wordsOf(command), examples))
  }
}

/**
 * The entry whose name is the first word of the call; null for help, for a word that no entry has, and where another option
 * than `--home` stands before the word.
 */
export function calledEntry(entries: readonly Entry[], args: readonly string[]): Entry | null {
  const word = args[args[0] === '--home' ? 2 : args[0]?.startsWith('--home=') ? 1 : 0]
  return entries.find(({ usage }) => usage.split(' ', 1)[0] === word) ?? null
}

function refuse(group: Command, [word, ...more]: readonly string[]): never {
  const isName = more.length === 0 && group.commands.some(each => each.name() === 'show')
  refuseWord(group, word!, isName && group.parent ? ` (did you mean \`${group.name()} show ${word}\`?)` : '')
}

/** `runs delete` */
function wordsOf(command: Command): string {
  const above = command.parent?.parent ? `${wordsOf(command.parent)} ` : ''
  return above + command.name()
}

/** What `last` and the beginning of an id stand for. */
const LAST = {
  run:
    '\n<run> is an id, its first characters (six or more), last: the newest top run, by its creation, or last-failed: the\n' +
    'newest that has failed.\n',
  review: '\n<review> is an id, its first characters (six or more), or last: the newest review that waits.\n',
}

function helpOf(words: string, examples: NonNullable<Entry['examples']>): string {
  const calls = examples.map(([args, does]) => {
    const call = `${words} ${args}`.trimEnd()
    return does === undefined ? call : `${call}     # ${does}`
  })
  const takesLast = examples.some(([args]) => /^last\b/.test(args))
  const about = takesLast ? LAST[words === 'decide' ? 'review' : 'run'] : ''
  return about + examplesText(calledAs(), calls)
}
