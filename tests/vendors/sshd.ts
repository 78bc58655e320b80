// A real sshd on this machine with keys of its own, for the user of the tests.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'

/** sshd refuses to start by another path than its full one. */
const SSHD = '/usr/sbin/sshd'
/**
 * Where sshd that is started by root puts its unprivileged part. Debian makes this folder when it boots; on a machine that
 * booted without sshd the first server of the tests makes it. It stays, because other servers may use it at this moment.
 */
const EMPTY = '/run/sshd'

/** Whether sshd is installed. Says so where it is not. */
export function hasSshd(): boolean {
  const isThere = existsSync(SSHD)
  if (!isThere) console.warn('sshd is not installed (Debian: openssh-server): its tests are skipped')
  return isThere
}

export interface Sshd {
  port: number
  /** Settings of an agent that signs in. */
  settings: { host: string; port: number; user: string; key_file: string; known_hosts: string }
  /** A key that the server does not know. */
  strange: string
  /** What the server logged. */
  log(): string
  stop(): Promise<void>
}

/**
 * `sftp`: the command that the server runs as its subsystem sftp; by default its own. `forced`: the command that it runs
 * instead of any other, which has the other one in SSH_ORIGINAL_COMMAND.
 */
export async function startSshd({ sftp = 'internal-sftp', forced = '' } = {}): Promise<Sshd> {
  const room = folder()
  const keyAt = (name: string) => {
    const file = join(room, name)
    const made = Bun.spawnSync(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', file])
    if (made.exitCode !== 0) throw new Error(String(made.stderr))
    return file
  }
  const [host, user, strange] = [keyAt('host'), keyAt('user'), keyAt('strange')]
  const port = freePort()
  const config = join(room, 'config')
  const lines = {
    Port: port,
    ListenAddress: '127.0.0.1',
    HostKey: host,
    AuthorizedKeysFile: `${user}.pub`,
    PidFile: 'none',
    UsePAM: 'no',
    StrictModes: 'no',
    PasswordAuthentication: 'no',
    KbdInteractiveAuthentication: 'no',
    PermitRootLogin: 'prohibit-password',
    MaxStartups: '100',
    // The default, which is made to outlive quantum computers, costs each connection 0.1 s of processor time.
    KexAlgorithms: 'curve25519-sha256',
    Subsystem: `sftp ${sftp}`,
    ...(forced && { ForceCommand: forced }),
  }
  writeFileSync(
    config,
    Object.entries(lines)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(''),
  )
  const known_hosts = join(room, 'known hosts')
  const [type, key] = readFileSync(`${host}.pub`, 'utf8').split(' ')
  writeFileSync(known_hosts, `[127.0.0.1]:${port} ${type} ${key}\n`)
  if (process.getuid?.() === 0) mkdirSync(EMPTY, { recursive: true })
  const child = Bun.spawn([SSHD, '-D', '-e', '-f', config], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  let said = ''
  const listens = Promise.withResolvers<void>()
  const read = async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      said += text
      if (said.includes('Server listening')) listens.resolve()
    }
    listens.reject(new Error(`sshd did not start: ${said}`))
  }
  void read()
  await listens.promise
  return {
    port,
    settings: {
      host: '127.0.0.1',
      port,
      user: String(Bun.spawnSync(['id', '-un']).stdout).trim(),
      key_file: user,
      known_hosts,
    },
    strange,
    log: () => said,
    async stop() {
      child.kill()
      await child.exited
    },
  }
}
