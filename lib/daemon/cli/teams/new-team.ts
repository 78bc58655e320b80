// Writes the files of a new team into a folder, without touching anything that is there, and says what to do next.

import { lstatSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { parse } from 'yaml'
import { CadreError } from '../../../error.ts'
import { calledAs, commandLine } from '../../../program/called-as.ts'
import { line } from '../../../text/printable.ts'
import { print, printMessage } from '../../../text/terminal.ts'

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/

export interface NewTeam {
  /** As the caller can type it. */
  folder: string
  files: Map<string, string>
}

/** The name of a team in `folder`. Throws `invalid_request` for a text that cannot be a name. */
export function teamName(folder: string, given?: string): string {
  const name =
    given ??
    basename(resolve(folder))
      .toLowerCase()
      .replaceAll(/[ _.]+/g, '-')
  if (NAME.test(name)) return name
  const what = given === undefined ? `the name of the folder, ${name},` : name
  const hint = given === undefined ? '; choose one with --name' : ''
  throw new CadreError(
    'invalid_request',
    `${what} cannot be the name of a team: it must be small letters, digits and -${hint}`,
  )
}

/**
 * Writes `files`, in which the team is called `original`, for the team `name`. Throws `conflict` when one of them
 * exists; then nothing is written.
 */
export function writeTeam(files: Map<string, string>, folder: string, name: string, original: string): NewTeam {
  const shown = near(folder)
  const there = lstatSync(folder, { throwIfNoEntry: false })
  if (there && !statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new CadreError('conflict', `${shown} is not a folder: choose another one`)
  }
  for (const path of files.keys()) mustBeFree(folder, path)
  const named = new Map(
    [...files].map(([path, text]) => [
      path,
      text
        .replaceAll(`"@local/${original}`, `"@local/${name}`)
        .replaceAll(/\bcadre (?=run |decide )/g, () => `${calledAs()} `)
        .replaceAll(`examples/${original}`, shown),
    ]),
  )
  for (const [path, text] of named) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { flag: 'wx' })
    print(line`${near(file)}`)
  }
  return { folder: shown, files: named }
}

/**
 * Throws `conflict` when there is something at `path` below `folder`, a link to nothing included, or when something on the
 * way there is no folder. A link to a folder could lead anywhere.
 */
function mustBeFree(folder: string, path: string): void {
  const parts = path.split(sep)
  for (const [at] of parts.entries()) {
    const parent = join(folder, ...parts.slice(0, at + 1))
    const found = lstatSync(parent, { throwIfNoEntry: false })
    if (found === undefined) return
    const last = at === parts.length - 1
    if (!last && found.isDirectory()) continue
    const what = last ? 'already exists' : 'exists and is not a folder'
    throw new CadreError('conflict', `${near(parent)} ${what}: choose another folder`)
  }
}

/** Prints the commands that come next: they can be pasted, except for the values of inputs that must be given. */
export function printNextSteps({ folder, files }: NewTeam): void {
  const { inputs = [] } = parse(files.get('team.yml')!) as { inputs?: { name: string; required?: boolean }[] }
  const agents = [...new Set([...files.values()].flatMap(agentsIn))].filter(agent => !['exec', 'http'].includes(agent))
  const values = inputs.filter(({ required }) => required).map(({ name }) => ` -i ${name}=…`)
  const next = [
    ['check it', commandLine('validate', folder)],
    ...agents.map(agent => [`settings of ${agent}`, commandLine('agents', agent)]),
    ['run it', commandLine('run', folder) + values.join('')],
  ]
  const width = Math.max(...next.map(([what]) => what!.length))
  for (const [what, command] of next) printMessage(line`${what!.padEnd(width)}  ${command!}`)
}

interface Written {
  agent?: string
  /** Of a team, and of a map in place. */
  phases?: Written[]
}

const agentsIn = (text: string): string[] => agentsOf(parse(text) as Written)

const agentsOf = ({ agent, phases = [] }: Written): string[] => [...(agent ? [agent] : []), ...phases.flatMap(agentsOf)]

/** A path as it is typed in the current folder. */
function near(path: string): string {
  const way = relative(process.cwd(), resolve(path))
  if (way === '') return '.'
  return way.startsWith('..') ? resolve(path) : way
}
