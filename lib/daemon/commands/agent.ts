// `agent new NAME`: writes a working agent and its test, which the author then changes.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { AGENT_NAME, discover } from '../../agent/catalogue.ts'
import { REPOSITORY } from '../../agent/imports.ts'
import { CadreError } from '../../error.ts'
import { homeFolder, makeHome } from '../home.ts'
import { agentSource, homeConfig, testSource } from './agent-template.ts'

interface Surroundings {
  home?: string
  cwd?: string
  repository?: string
}

/**
 * Prints the two files. Throws `invalid_request` for a name that is not valid, and `conflict` for one that is taken.
 */
export async function agentNew(
  name: string,
  { home: given, cwd = process.cwd(), repository = REPOSITORY }: Surroundings,
): Promise<void> {
  if (!AGENT_NAME.test(name) || name.length > 100) {
    throw new CadreError('invalid_request', `${name} is not a valid name of an agent; it must match [a-z][a-z0-9_-]*`)
  }
  const home = homeFolder(given)
  const inRepository = `${resolve(cwd)}${sep}`.startsWith(`${resolve(repository)}${sep}`)
  const root = inRepository ? repository : home
  if (!inRepository) makeHome(home)
  const agent = join(root, 'agents', `${name}.ts`)
  const test = join(root, inRepository ? 'tests/agents' : 'tests', `${name}.test.ts`)
  const known = (await discover({ home, extra: process.env.CADRE_AGENTS })).get(name)
  const taken = [agent, test].find(existsSync) ?? (known && `another agent ${name}`)
  if (taken) throw new CadreError('conflict', `${taken} already exists: choose another name`)

  if (!inRepository) configure(join(home, 'tsconfig.json'), repository)
  write(agent, agentSource(name))
  write(test, testSource(name, relative(dirname(test), dirname(agent))))
  process.stdout.write(`${agent}\n${test}\n`)
}

/** Leaves an existing file as it is, and says what it lacks. */
function configure(file: string, repository: string): void {
  if (!existsSync(file)) return write(file, homeConfig(repository))
  const line = `"extends": "${repository}/tsconfig.json"`
  if (readFileSync(file, 'utf8').includes(line)) return
  process.stderr.write(`${file} was not changed; for tests and editors to find cadre, it must contain ${line}\n`)
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text, { flag: 'wx' })
}
