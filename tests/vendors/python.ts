// Servers that come as Debian's Python packages: whether they are there, and their programs as processes.

import { join } from 'node:path'

/** Debian's own: its packages are not there for another Python. */
const PYTHON = '/usr/bin/python3'

/** Whether a module is installed. Says so where it is not. */
export function hasPython(module: string, debian: string): boolean {
  const isThere = Bun.which(PYTHON) !== null && Bun.spawnSync([PYTHON, '-c', `import ${module}`]).exitCode === 0
  if (!isThere) console.warn(`${module} is not installed (Debian: ${debian}): its tests are skipped`)
  return isThere
}

/** A program of this folder, once it has printed its first line; `onLine` takes the others. */
export async function pythonProgram(name: string, args: readonly string[], onLine: (line: string) => void = () => {}) {
  const child = Bun.spawn([PYTHON, join(import.meta.dir, name), ...args], { stdout: 'pipe', stderr: 'pipe' })
  const first = Promise.withResolvers<string>()
  const read = async () => {
    let rest = ''
    let started = false
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) {
        if (started) onLine(line)
        else first.resolve(line)
        started = true
      }
    }
    if (!started) first.reject(new Error(`${name} did not start: ${await child.stderr.text()}`))
  }
  void read()
  return {
    first: await first.promise,
    async stop() {
      child.kill()
      await child.exited
    },
  }
}
