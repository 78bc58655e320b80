// The pid files of the servers of one kind, such as the hubs of a database: each names the process that serves at an
// address. A file stays behind where a process did not end by itself, and may then name a process of somebody else.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { namesIn } from '../files/names-in.ts'
import { isObject } from '../json.ts'
import { isAlive, ownMark, type ProcessMark, startOf } from './process.ts'

export interface ServerProcess extends ProcessMark {
  file: string
  /** Where it serves; null in a file that somebody else wrote. */
  url: string | null
  /** How long it still answers after it was told to stop. */
  drainMs: number
}

/**
 * Writes `<base>.<port>.pid` for this process, which removes it when it ends by itself and without a failure. Removes
 * the files of those that are gone.
 */
export function writePidFile(base: string, port: number, url: string, drainMs: number): void {
  const own = ownMark()
  const { pid, boot, started } = own
  const file = `${base}.${port}.pid`
  mkdirSync(dirname(base), { recursive: true, mode: 0o700 })
  for (const other of serversOf(base)) if (!isAlive(other)) rmSync(other.file, { force: true })
  // The first line is what other programs expect of such a file.
  const more = JSON.stringify({ boot, started, url, drain_ms: drainMs })
  writeFileSync(file, `${pid}\n${more}\n`, { mode: 0o600 })
  process.on('exit', code => {
    if (code === 0 && isNamed({ file, ...own })) rmSync(file, { force: true })
  })
}

/** The servers that have a pid file, dead or alive. */
export function serversOf(base: string): ServerProcess[] {
  const start = `${basename(base)}.`
  return namesIn(dirname(base))
    .filter(name => name.startsWith(start) && /^\d+\.pid$/.test(name.slice(start.length)))
    .flatMap(each => read(join(dirname(base), each)) ?? [])
}

/** Whether a server lives, is gone, or its id belongs to another process by now. */
export function stateOf(server: ServerProcess): 'alive' | 'gone' | 'foreign' {
  if (isAlive(server)) return 'alive'
  const { pid } = server
  // A zombie has a start time, too.
  const started = startOf(pid)
  return started === null || started === server.started ? 'gone' : 'foreign'
}

/** Whether the pid file of a server names it still. It does not when the server ended by itself, or another one has it now. */
export function isNamed({ file, pid, boot, started }: ProcessMark & Pick<ServerProcess, 'file'>): boolean {
  const named = read(file)
  return named !== null && named.pid === pid && named.boot === boot && named.started === started
}

/** Null when it is gone or has no id of a process. */
function read(file: string): ServerProcess | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  const [first = '', rest = ''] = text.split('\n')
  const pid = Number(first)
  // A signal to 0 or a negative id would reach a group of processes.
  if (!Number.isSafeInteger(pid) || pid <= 0) return null
  const { boot, started, url, drain_ms } = objectOf(rest)
  return {
    ...{ file, pid, boot: String(boot ?? ''), started: String(started ?? '') },
    ...{ url: typeof url === 'string' ? url : null, drainMs: Number(drain_ms) || 0 },
  }
}

function objectOf(text: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(text)
    return isObject(found) ? found : {}
  } catch {
    return {}
  }
}
