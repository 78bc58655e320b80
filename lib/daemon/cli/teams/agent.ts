// `agent new NAME`: writes a working agent and its test, which the author then changes. With `--from` the agent is a copy of
// a built-in one.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { AGENT_NAME, BUILT_IN, discover } from '../../../agent/catalogue.ts'
import { CadreError } from '../../../error.ts'
import { carried } from '../../../program/carried.ts'
import { packagesWith, ROOT } from '../../../program/install-root.ts'
import { line } from '../../../text/printable.ts'
import { didYouMean } from '../../../text/spelling.ts'
import { print, printMessage } from '../../../text/terminal.ts'
import { homeFolder, makeHome } from '../../home/home.ts'
import { agentSource, copyTestSource, homeConfig, testSource } from './agent-template.ts'

interface Surroundings {
  home?: string
  /** The built-in agent to copy. */
  from?: string
  /** Into the repository, as one of cadre's own agents, instead of the home. */
  builtIn?: boolean
  repository?: string
}

/**
 * Prints the two files. Throws `invalid_request` for a name that is not valid, and `conflict` for one that is taken.
 */
export async function agentNew(
  name: string,
  { home: given, from, builtIn: inRepository = false, repository = ROOT }: Surroundings,
): Promise<void> {
  if (!AGENT_NAME.test(name) || name.length > 100) {
    throw new CadreError('invalid_request', `${name} is not a valid name of an agent; it must match [a-z][a-z0-9_-]*`)
  }
  if (inRepository && !existsSync(join(repository, 'tests'))) {
    throw new CadreError('invalid_request', '--built-in needs the repository of cadre: call it there, as bun daemon.ts')
  }
  const home = homeFolder(given)
  const root = inRepository ? repository : home
  if (!inRepository) makeHome(home)
  const agent = join(root, 'agents', `${name}.ts`)
  const test = join(root, inRepository ? 'tests/agents' : 'tests', `${name}.test.ts`)
  const known = (await discover({ home, extra: process.env.CADRE_AGENTS })).get(name)
  const taken = [agent, test].find(existsSync) ?? (known && `another agent ${name}`)
  if (taken) throw new CadreError('conflict', `${taken} already exists: choose another name`)

  const original = from === undefined ? null : sourceOf(from)
  const agents = relative(dirname(test), dirname(agent))

  if (!inRepository) configure(join(home, 'tsconfig.json'), repository)
  write(agent, original ?? agentSource(name))
  write(test, from === undefined ? testSource(name, agents) : copyTestSource(name, agents, from))
  print(line`${agent}`, line`${test}`)
}

/** The source of a built-in agent. Throws `invalid_request` for any other name. */
function sourceOf(name: string): string {
  const known = readdirSync(BUILT_IN).flatMap(file => (file.endsWith('.ts') ? [basename(file, '.ts')] : []))
  if (known.includes(name)) return readFileSync(join(BUILT_IN, `${name}.ts`), 'utf8')
  const near = didYouMean(name, known)
  throw new CadreError('invalid_request', `there is no built-in agent ${name}${near}; there are ${known.join(', ')}`)
}

/** Leaves an existing file as it is, and says what it lacks. */
function configure(file: string, repository: string): void {
  if (carried) {
    printMessage(line`for tests and editors, install the npm package cadre: this program has no files to refer to`)
    return
  }
  if (!existsSync(file)) {
    return write(file, homeConfig(repository, packagesWith('bun-types') ?? join(repository, 'node_modules')))
  }
  const setting = `"extends": "${repository}/tsconfig.json"`
  if (readFileSync(file, 'utf8').includes(setting)) return
  printMessage(line`${file} was not changed; for tests and editors to find cadre, it must contain ${setting}`)
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text, { flag: 'wx' })
}
