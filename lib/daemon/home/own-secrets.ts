// The daemon's own secrets that a command of a run could read: its environment (`/proc/$PPID/environ`), the local
// token, the session, and the keys of publishers in its home. They are masked like the secrets of the settings.

import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../json.ts'
import { environmentSecrets } from '../../secrets/environment-secrets.ts'
import type { KnownSecret } from '../../secrets/redact.ts'
import { localToken } from './home.ts'
import { publishKeys } from './publish-keys.ts'

export function ownSecrets(home: string, env: Record<string, string | undefined>): KnownSecret[] {
  return [
    { name: 'the local token', value: localToken(home) },
    ...sessionOf(home),
    ...signingKeysOf(home),
    ...environmentSecrets(env),
  ]
}

/** How often a daemon looks whether its home has new credentials. */
const LOOK_MS = 100

/** Returns a function that calls `changed` if `login`, `logout` or `keys` have changed the credentials in the home. */
export function onOwnSecrets(home: string, changed: () => void): () => void {
  let known = stampOf(home)
  let nextLook = 0
  return () => {
    const now = performance.now()
    if (now < nextLook) return
    nextLook = now + LOOK_MS
    const stamp = stampOf(home)
    if (stamp === known) return
    known = stamp
    changed()
  }
}

const stampOf = (home: string): string =>
  ['session', 'publish-keys.json'].map(name => stampOfFile(join(home, name))).join(' ')

function stampOfFile(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false })
  return found ? `${found.ino} ${found.mtimeNs}` : 'none'
}

/** The token of the session that `login` stored. */
function sessionOf(home: string): KnownSecret[] {
  try {
    const session: unknown = JSON.parse(readFileSync(join(home, 'session'), 'utf8'))
    return isObject(session) && typeof session.token === 'string' ? [{ name: 'the session', value: session.token }] : []
  } catch {
    return []
  }
}

function signingKeysOf(home: string): KnownSecret[] {
  try {
    return publishKeys(home).map(({ key, secret }) => ({ name: `the secret half of ${key}`, value: secret }))
  } catch {
    return []
  }
}
