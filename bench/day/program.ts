// One of our servers, or one of others, as a process of a day: what it prints goes into a file, and no process outlives
// the bench.

import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { folder } from '../../tests/support/folder.ts'

/** The sources of this commit. */
export const TREE = resolve(import.meta.dir, '../..')

const running = new Set<Bun.Subprocess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export interface Program {
  /** Where it listens; empty for one that does not say. */
  url: string
  log(): string
  /** Returns the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number>
}

/** Starts `words`, and waits for the first line, which says where it listens. Throws when it ends before that. */
export async function start(words: string[], env: Record<string, string>): Promise<Program> {
  const log = join(folder(), 'log')
  await Bun.write(log, '')
  const child = Bun.spawn(words, { env, stdin: 'ignore', stdout: 'pipe', stderr: Bun.file(log) })
  running.add(child)
  void child.exited.then(() => running.delete(child))
  const { value } = await child.stdout.getReader().read()
  const text = () => readFileSync(log, 'utf8')
  if (value === undefined) throw new EndedError(words.at(-1)!, await child.exited, text())
  return {
    url: /http:\S+/.exec(new TextDecoder().decode(value))?.[0] ?? '',
    log: text,
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      return child.exited
    },
  }
}

/** Starts a server that prints nothing when it listens. */
export function startSilently(words: string[], env: Record<string, string>): () => Promise<void> {
  const child = Bun.spawn(words, { env, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  running.add(child)
  return async () => {
    child.kill('SIGTERM')
    await child.exited
    running.delete(child)
  }
}

/** A program that ended instead of serving. */
export class EndedError extends Error {
  readonly code: number
  readonly said: string

  constructor(what: string, code: number, said: string) {
    super(`${what} ended with ${code}: ${said}`)
    this.code = code
    this.said = said
  }
}
