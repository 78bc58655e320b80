// `examples`: lists the finished teams that come with cadre, and copies one into a folder of yours.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { CadreError } from '../../../error.ts'
import { ROOT } from '../../../program/install-root.ts'
import { createPaint } from '../../../text/printable.ts'
import { didYouMean } from '../../../text/spelling.ts'
import { print, printJsonLine } from '../../../text/terminal.ts'
import { table } from '../terminal/table.ts'
import { printNextSteps, writeTeam } from './new-team.ts'

const EXAMPLES = join(ROOT, 'examples')

export interface Example {
  name: string
  description: string
}

/** Without a name: lists them. With a name: copies that one to `folder`, which is by default a folder of that name. */
export async function examples(
  name: string | undefined,
  folder: string | undefined,
  { json }: { json?: boolean },
): Promise<void> {
  if (name !== undefined) {
    const files = exampleFiles(name)
    const written = writeTeam(files, folder ?? name, name, name)
    return printNextSteps(written)
  }
  const all = listExamples()
  if (json) return void printJsonLine(all)
  const paint = createPaint(process.stdout)
  print(table(all.map(each => [paint.bold(each.name), each.description])))
}

export function exampleNames(): string[] {
  return readdirSync(EXAMPLES).sort()
}

export function listExamples(): Example[] {
  return exampleNames().map(name => {
    const { description } = parse(readFileSync(join(EXAMPLES, name, 'team.yml'), 'utf8')) as Example
    return { name, description }
  })
}

/** The files of an example by path. Throws `invalid_request` for a name that none has. */
export function exampleFiles(name: string): Map<string, string> {
  const known = exampleNames()
  if (!known.includes(name)) {
    const near = didYouMean(name, known)
    throw new CadreError('invalid_request', `there is no example ${name}${near}; there are ${known.join(', ')}`)
  }
  const files = new Map<string, string>()
  const walk = (path: string) => {
    for (const entry of readdirSync(join(EXAMPLES, name, path), { withFileTypes: true })) {
      const below = join(path, entry.name)
      if (entry.isDirectory()) walk(below)
      else files.set(below, readFileSync(join(EXAMPLES, name, below), 'utf8'))
    }
  }
  walk('')
  return files
}
