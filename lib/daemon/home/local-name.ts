// The name of the person behind a call from this machine.

import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'

let known: string | undefined

/** `local:<os user>`, the actor behind a call from this machine. */
export const localName = (): string => `local:${userName()}`

/**
 * The user that this process belongs to. `userInfo()` reads the environment, which in a container is
 * often empty, and a process that asks costs a run more than its own record.
 */
export function userName(): string {
  known ??= inPasswd() ?? asked() ?? userInfo().username
  return known
}

function inPasswd(): string | null {
  try {
    const own = String(process.getuid?.())
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
    return lines.map(line => line.split(':')).find(fields => fields[2] === own)?.[0] || null
  } catch {
    return null
  }
}

/** Users of a directory service, and all of macOS, are not in the file. */
function asked(): string | null {
  const { success, stdout } = Bun.spawnSync(['id', '-un'], { stderr: 'ignore' })
  return (success && stdout.toString().trim()) || null
}
