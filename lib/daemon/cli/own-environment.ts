// Separates the environment that this process was given from what Bun added from files of the current folder. Before
// our first line, Bun reads `.env` and runs the preload of `bunfig.toml`, so a downloaded folder could choose the home,
// the hub or the proxy. Only Linux shows what a process was given, so there is no check elsewhere.

import { readFileSync, realpathSync } from 'node:fs'
import { CadreError } from '../../error.ts'
import { carried } from '../../program/carried.ts'
import { ROOT } from '../../program/install-root.ts'

type Environment = Record<string, string | undefined>

/** Variables that decide where state is stored, what code is loaded, and who gets credentials. */
const LEADING =
  /^(CADRE_.*|OTEL_.*|HOME|(HTTPS?|ALL|NO)_PROXY|NODE_EXTRA_CA_CERTS|NODE_TLS_REJECT_UNAUTHORIZED|SSL_CERT_(FILE|DIR)|(AWS|S3)_.*)$/i

/**
 * Throws `invalid_request` when a file of the current folder set such a variable. Other variables from such files are
 * removed, so that no setting reads them through `${env:NAME}`. In cadre's own folder, and with `--env-file`, files are
 * allowed. A compiled program reads no such files.
 */
export function refuseForeignEnvironment(env: Environment = process.env, given = givenEnvironment()): void {
  if (given === null || carried || isOwnFolder() || process.execArgv.some(flag => flag.startsWith('--env-file'))) return
  const foreign = Object.keys(env).filter(name => env[name] !== given.get(name))
  const leading = foreign.filter(name => LEADING.test(name))
  if (leading.length > 0) {
    throw new CadreError(
      'invalid_request',
      `${leading.join(', ')} comes from a file of the current folder, such as .env: ` +
        'export it, start in another folder, or name the file with bun --env-file=FILE',
    )
  }
  for (const name of foreign) if (!given.has(name)) delete env[name]
}

function isOwnFolder(): boolean {
  return realpathSync(process.cwd()) === realpathSync(ROOT)
}

/** The environment that this process was started with, or null where the system does not show it. */
function givenEnvironment(): ReadonlyMap<string, string> | null {
  try {
    const lines = readFileSync('/proc/self/environ', 'utf8').split('\0').filter(Boolean)
    return new Map(lines.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
  } catch {
    return null
  }
}
