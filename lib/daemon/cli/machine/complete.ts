// `complete -- WORDS`: what the word at the cursor may become, for the scripts of `completion`. Commands and options are
// those of the command line itself; ids, names and folders are looked up. Nothing here fails: a shell that asks for words
// wants no error between them.

import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Argument, Command, Option } from 'commander'
import { findAgents } from '../../../agent/catalogue.ts'
import { line } from '../../../text/printable.ts'
import { print } from '../../../text/terminal.ts'
import { ListReviews } from '../../../wire/calls/reviews.ts'
import { ListRuns } from '../../../wire/calls/runs.ts'
import { ListTriggers } from '../../../wire/calls/triggers.ts'
import { homeFolder } from '../../home/home.ts'
import { askAboutRuns } from '../backend/run-answers.ts'
import { askAboutTriggers } from '../backend/trigger-answers.ts'
import { exampleNames } from '../teams/examples.ts'
import { STARTS } from '../teams/team-template.ts'

interface Candidate {
  word: string
  description?: string | undefined
}

/** Makes the shell complete names of files by itself. */
const FILES: Candidate = { word: ':files' }

/** A person waits for the answer, and a process that holds the home may not give one. */
const PATIENCE_MS = 1_000
/** A key that somebody presses changes no home. Nothing is listed of one that an older program has written. */
const OLDER = 'refuse'
const MOST = 50

/** The commands of the hub, which are another program (lib/hub/cli). */
export const HUB_COMMANDS = ['serve', 'drain', 'user', 'backup', 'restore', 'reconcile', 'key']

interface Cursor {
  command: Command
  /** The option whose value is at the cursor. */
  option: Option | undefined
  /** The words before the cursor that are arguments of the command. */
  given: string[]
  home: string | undefined
}

/** Prints a word a line, with its description after a tab. */
export async function printWords(program: Command, words: readonly string[]): Promise<void> {
  for (const { word, description } of await complete(program, words)) {
    print(description ? line`${word}\t${description}` : line`${word}`)
  }
}

/** `words` are those after the name of the program; the last is at the cursor and may be empty. */
async function complete(program: Command, words: readonly string[]): Promise<Candidate[]> {
  const current = words.at(-1) ?? ''
  const cursor = cursorOf(program, words.slice(0, -1))
  const found = await candidates(cursor, current).catch(() => [])
  return found.filter(({ word }) => word.startsWith(current) || word === FILES.word)
}

function cursorOf(program: Command, before: readonly string[]): Cursor {
  const cursor: Cursor = { command: program, option: undefined, given: [], home: undefined }
  for (const word of before) {
    if (cursor.option) {
      if (cursor.option.long === '--home') cursor.home = word
      cursor.option = undefined
    } else if (word.startsWith('-')) {
      const option = optionsOf(cursor.command).find(({ long, short }) => word === long || word === short)
      if (option?.required) cursor.option = option
    } else {
      const below = cursor.given.length === 0 && cursor.command.commands.find(each => each.name() === word)
      if (below) cursor.command = below
      else cursor.given.push(word)
    }
  }
  return cursor
}

/** The options of a command and of all above it. */
function optionsOf(command: Command): Option[] {
  return [...command.options, ...(command.parent ? optionsOf(command.parent) : [])].filter(({ hidden }) => !hidden)
}

async function candidates({ command, option, given, home }: Cursor, current: string): Promise<Candidate[]> {
  if (option) return valuesOf(option.attributeName(), option.argChoices, current, home)
  if (current.startsWith('-')) {
    return optionsOf(command).map(({ long, short, description }) => ({ word: long ?? short!, description }))
  }
  if (command.name() === 'hub' && given.length === 0) return HUB_COMMANDS.map(word => ({ word }))
  // The last argument may take several words.
  const { registeredArguments: all } = command
  const argument = all[given.length] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined)
  const below = given.length === 0 ? namesBelow(command) : []
  return [...below, ...(argument ? await valuesOf(nameOf(argument, given), argument.argChoices, current, home) : [])]
}

const nameOf = (argument: Argument, given: readonly string[]) =>
  argument.name() === 'folder' && given.length === 0 ? 'team' : argument.name()

function namesBelow(command: Command): Candidate[] {
  const shown = command.createHelp().visibleCommands(command)
  return shown.map(each => ({ word: each.name(), description: each.summary() || each.description() }))
}

/** The words for an argument or an option, by its name. */
async function valuesOf(
  name: string,
  choices: readonly string[] | undefined,
  current: string,
  home: string | undefined,
): Promise<Candidate[]> {
  if (choices) return choices.map(word => ({ word }))
  switch (name) {
    case 'run':
      return runs(homeFolder(home))
    case 'trigger':
      return triggers(homeFolder(home))
    case 'tz':
      return [...Intl.supportedValuesOf('timeZone'), 'UTC'].map(word => ({ word }))
    case 'review':
      return reviews(homeFolder(home))
    case 'team':
      return folders(current)
    case 'agent':
      return agents(homeFolder(home))
    case 'from':
      return [...Object.entries(STARTS), ...exampleNames().map(each => [each, ''])].map(([word, description]) => ({
        word: word!,
        description,
      }))
    case 'example':
      return exampleNames().map(word => ({ word }))
    case 'shell':
      return ['bash', 'zsh', 'fish'].map(word => ({ word }))
    case 'program':
      return ['daemon', 'hub'].map(word => ({ word }))
    case 'verb':
      return [{ word: 'get' }]
    case 'decision':
      return ['approve', 'reject', 'retry', 'skip', 'complete', 'fail'].map(word => ({ word }))
    case 'home':
    case 'folder':
    case 'workspace':
    case 'inputs':
    case 'output':
    case 'file':
    case 'database':
      return [FILES]
    default:
      return []
  }
}

async function runs(home: string): Promise<Candidate[]> {
  const { runs } = await soon(askAboutRuns(home, all => all.call(ListRuns, { root_only: true, limit: MOST }), OLDER))
  const ids = runs.map(({ run_id, team, run_name, state }) => ({
    word: run_id,
    description: [team, run_name, state].filter(Boolean).join(' '),
  }))
  return ids[0] ? [{ word: 'last', description: `the newest: ${ids[0].description}` }, ...ids] : []
}

async function reviews(home: string): Promise<Candidate[]> {
  const filter = { state: 'pending', limit: MOST }
  const { reviews } = await soon(askAboutRuns(home, all => all.call(ListReviews, filter), OLDER))
  const ids = reviews.map(({ id, phase, prompt }) => ({
    word: id,
    description: phase === null ? `${prompt}` : `${phase}: ${prompt}`,
  }))
  return ids[0] ? [{ word: 'last', description: `the newest: ${ids[0].description}` }, ...ids] : []
}

async function triggers(home: string): Promise<Candidate[]> {
  const { triggers } = await soon(askAboutTriggers(home, all => all.call(ListTriggers, { limit: MOST }), OLDER))
  return triggers.map(({ name, words }) => ({ word: name, description: words }))
}

function agents(home: string): Candidate[] {
  return findAgents({ home, extra: process.env.CADRE_AGENTS })
    .names()
    .map(word => ({ word }))
}

/** Folders with a team, and folders that may have one below them, which end with a slash. */
function folders(current: string): Candidate[] {
  const above = current.endsWith('/') ? current : current.includes('/') ? `${dirname(current)}/` : ''
  return readdirSync(above || '.', { withFileTypes: true })
    .filter(entry => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
    .flatMap(({ name }): Candidate[] => {
      const path = above + name
      const inside = readdirSync(path, { withFileTypes: true })
      const hasFolders = inside.some(entry => entry.isDirectory())
      const team = inside.some(entry => entry.name === 'team.yml') ? [{ word: path, description: 'team' }] : []
      return [...team, ...(hasFolders ? [{ word: `${join(path)}/` }] : [])]
    })
}

function soon<T>(answer: Promise<T>): Promise<T> {
  const late = Bun.sleep(PATIENCE_MS).then(() => Promise.reject(new Error('too late')))
  return Promise.race([answer, late])
}
