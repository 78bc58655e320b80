// A daemon of its own for a measurement, with the agents of the benches.

import { join } from 'node:path'

export const FROM_SOURCE = [process.execPath, join(import.meta.dir, '../daemon.ts')]

/** Throws when a run has not completed. */
export const completed = ({ state, error }: { state: string; error?: unknown }): void => {
  if (state !== 'completed') throw new Error(`a run ${state}: ${JSON.stringify(error)}`)
}

/** Starts a daemon on `home` and measures the milliseconds until it accepts requests. */
export async function serve(home: string, program = FROM_SOURCE) {
  const started = performance.now()
  const child = Bun.spawn([...program, '--home', home, 'serve', '--port', '0'], {
    env: { ...process.env, CADRE_AGENTS: join(import.meta.dir, 'agents') },
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const { value } = await child.stdout.getReader().read()
  const url = new TextDecoder().decode(value).trim().split(' ').at(-1)!
  const call = async (path: string, body: object) => {
    const reply = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await reply.json()) as {
      data: { run_id: string; state: string; runs: { completed_at: number }[]; total: number }
    }
  }
  const ended = async (run_id: string) => {
    for (;;) {
      const { data } = await call('/v1/runs/get', { run_id })
      if (data.state !== 'running') return completed(data)
      await Bun.sleep(2)
    }
  }
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    await child.exited
  }
  return { pid: child.pid, call, ended, stop, ms: performance.now() - started }
}

/** The memory of a process in MiB, as the kernel reports it; NaN where it does not. */
export async function memory(pid: number, field: 'VmRSS' | 'RssAnon' | 'VmHWM'): Promise<number> {
  const text = await Bun.file(`/proc/${pid}/status`)
    .text()
    .catch(() => '')
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN) / 1_024
}
