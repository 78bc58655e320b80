// Starts one of our servers in its own process.

import type { Subprocess } from 'bun'

export interface Server {
  url: string
  pid: number
  stop(): Promise<void>
}

/** Starts `bun ARGS`, which prints its URL. Its environment is only PATH and `env`. */
export async function serve(args: string[], env: Record<string, string> = {}): Promise<Server> {
  const child: Subprocess<'ignore', 'pipe', 'ignore'> = Bun.spawn([process.execPath, ...args], {
    env: { PATH: process.env.PATH!, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  // A measurement that fails leaves no process behind.
  process.on('exit', () => child.kill('SIGKILL'))
  const { value } = await child.stdout.getReader().read()
  const url = /http:\S+/.exec(new TextDecoder().decode(value))?.[0]
  if (!url) throw new Error(`${args.join(' ')} did not start`)
  return {
    url,
    pid: child.pid,
    async stop() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}
