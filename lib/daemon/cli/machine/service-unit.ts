// The unit with which systemd or launchd keeps the daemon or the hub running: a file of deploy/, in which the path of this
// cadre replaces the one of the file, and where the unit belongs.

import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CadreError } from '../../../error.ts'
import { carried } from '../../../program/carried.ts'
import { installation, ROOT } from '../../../program/install-root.ts'

export const SERVED = ['daemon', 'hub'] as const
export type Served = (typeof SERVED)[number]

export interface Unit {
  name: string
  file: string
  text: string
  /** The file with the settings of the service, or null where launchd has none. */
  settings: string | null
  /** Of launchd, where the service writes what it logs. */
  log: string | null
}

/**
 * The unit, for the home of the user if `home` is null. Throws `invalid_request` where this cadre cannot be a service: it
 * could be gone at the next start.
 */
export function unitOf(served: Served, system: boolean, home: string | null = null): Unit {
  const command = lastingCommand()
  if (process.platform === 'darwin') return launchAgent(served, system, command, home)
  if (system) refuseHomes(command)
  const name = `cadre-${served}`
  const given = readFileSync(join(ROOT, 'deploy/systemd', system ? '' : 'user', `${name}.service`), 'utf8')
  const ownHome = home === null ? '' : `Environment=${word(`CADRE_HOME=${home}`, true)}\n`
  const text = given
    .replace(/^ExecStart=\S+/m, () => `ExecStart=${word(command).replaceAll('$', '$$$$')}`)
    .replace(/^Environment="PATH=.*"$/m, () => `Environment=${word(`PATH=${process.env.PATH ?? ''}`, true)}`)
    // Before the file with the settings, which may name another one.
    .replace(/^EnvironmentFile=/m, found => `${ownHome}${found}`)
  const configured = process.env.XDG_CONFIG_HOME || join(homedir(), '.config')
  const file = join(system ? '/etc/systemd/system' : join(configured, 'systemd/user'), `${name}.service`)
  const settings = join(system ? '/etc' : configured, 'cadre', `${served}.env`)
  return { name, file, text, settings, log: null }
}

function launchAgent(served: Served, system: boolean, command: string, home: string | null): Unit {
  if (system) {
    throw new CadreError(
      'invalid_request',
      '--system is for systemd; on macOS a service belongs to a user: leave it out',
    )
  }
  const name = `cadre-${served}`
  const log = join(homedir(), 'Library/Logs', `${name}.log`)
  const text = readFileSync(join(ROOT, 'deploy/launchd', `${name}.plist`), 'utf8')
    .replace('/usr/local/bin/cadre', () => escaped(command))
    .replace('<string>/usr/local/bin:/usr/bin:/bin</string>', () => {
      const path = `<string>${escaped(process.env.PATH ?? '')}</string>`
      return home === null ? path : `${path}\n    <key>CADRE_HOME</key>\n    <string>${escaped(home)}</string>`
    })
    .replace(`/tmp/${name}.log`, () => escaped(log))
  return { name, file: join(homedir(), 'Library/LaunchAgents', `${name}.plist`), text, settings: null, log }
}

/** The path of a cadre that is still there tomorrow. */
function lastingCommand(): string {
  const way = installation()
  if (way === 'container') {
    throw new CadreError('invalid_request', 'this is a container: what runs the container also keeps it running')
  }
  if (way === 'npx' || way === 'bunx') {
    const install = 'install cadre first, as docs/install.md says'
    throw new CadreError('invalid_request', `${way} keeps packages only for a while: ${install}`)
  }
  return carried ? process.execPath : join(ROOT, 'deploy/cadre')
}

/** A service of the system has no access to homes, and is not what one user can change. */
function refuseHomes(command: string): void {
  const inHome = [command, process.execPath].find(path => /^\/(home|root)\//.test(path))
  if (inHome === undefined) return
  throw new CadreError(
    'invalid_request',
    `${dirname(inHome)} is in a home, which services of the system cannot read: ` +
      'install cadre for everybody, or leave out --system',
  )
}

/** A word of a unit file, see systemd.syntax(7). `always` quotes it although it needs no quotes. */
function word(text: string, always = false): string {
  const plain = text.replaceAll('%', '%%')
  if (!always && /^[\w@%+=:,./-]+$/.test(plain)) return plain
  return `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
