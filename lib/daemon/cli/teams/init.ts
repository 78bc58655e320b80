// `init`: writes a new team, from a small start or from a finished example. At a terminal it asks for what was not given.

import { CadreError } from '../../../error.ts'
import { line } from '../../../text/printable.ts'
import { didYouMean } from '../../../text/spelling.ts'
import { printMessage } from '../../../text/terminal.ts'
import { askForm, isAtTerminal } from '../kit/form.ts'
import { exampleFiles, listExamples } from './examples.ts'
import { printNextSteps, teamName, writeTeam } from './new-team.ts'
import { isStart, STARTS, startFiles } from './team-template.ts'

interface Options {
  from?: string
  name?: string
}

/**
 * Throws `invalid_request` for a start or a name that is not valid, and for anything that is missing where nobody can be
 * asked; `conflict` where the folder has such files already.
 */
export async function init(given: string | undefined, options: Options): Promise<void> {
  const from = options.from ?? (await askStart())
  checkStart(from)
  const folder = given ?? options.name ?? (await askFolder(from))
  const name = teamName(folder, options.name)
  const files = isStart(from) ? startFiles(from) : exampleFiles(from)
  printNextSteps(writeTeam(files, folder, name, from))
}

function choices(): Record<string, string> {
  return { ...STARTS, ...Object.fromEntries(listExamples().map(({ name, description }) => [name, description])) }
}

function checkStart(from: string): void {
  const known = Object.keys(choices())
  if (known.includes(from)) return
  throw new CadreError('invalid_request', `--from ${from}${didYouMean(from, known)}: must be ${known.join(', ')}`)
}

async function askStart(): Promise<string> {
  const all = choices()
  if (!isAtTerminal()) {
    throw new CadreError('invalid_request', `--from is missing; it must be one of ${Object.keys(all).join(', ')}`)
  }
  const width = Math.max(...Object.keys(all).map(name => name.length))
  for (const [name, what] of Object.entries(all)) printMessage(line`  ${name.padEnd(width)}  ${what}`)
  return ask('from', 'what to begin with, one of these', 'exec')
}

async function askFolder(from: string): Promise<string> {
  if (isAtTerminal())
    return ask('folder', 'a new folder, whose name is that of the team', isStart(from) ? 'my-team' : from)
  if (!isStart(from)) return from
  throw new CadreError('invalid_request', 'the folder is missing: name it, or give the team a --name')
}

async function ask(name: string, description: string, standard: string): Promise<string> {
  const field = { name, type: 'string', required: false, secret: false, default: standard, description } as const
  const { [name]: typed = standard } = await askForm([field])
  return String(typed)
}
