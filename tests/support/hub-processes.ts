// Starts several hubs as processes on one database, sends requests to them over IPC, and puts one address in front of
// them.

import { resolve } from 'node:path'
import type { PasswordCost } from '../../lib/hub/core/hub.ts'
import { environmentAt } from './program.ts'

/** `CADRE_METRICS_TOKEN` of the hubs. */
export const METRICS_TOKEN = 'a-token-that-reads-metrics'

/** `TEST_HUB_PROGRAM` is a bundle of it, for whom it starts very often. */
const PROGRAM = process.env.TEST_HUB_PROGRAM ?? resolve(import.meta.dir, 'hub-process.ts')

export interface Question {
  id: number
  ask: 'skew' | 'flush' | 'log' | 'webhooks'
  ms?: number
}

export interface Answer {
  /** The id of the question; 0 for the message that the hub listens. */
  id: number
  url?: string
  lines: string[]
}

export interface HubProcess {
  url: string
  child: Bun.Subprocess
  ask(ask: Question['ask'], ms?: number): Promise<string[]>
  /** Stops the hub. Throws unless it exits by itself. */
  stop(): Promise<void>
}

export interface HubPlace {
  database: string
  home: string
  /** The password of `admin`, who is created on an empty database. */
  password: string
  passwordCost: PasswordCost
  port?: number
  /** By how many milliseconds the clock is ahead at first. */
  skew?: number
  /** Variables of the environment, such as `CADRE_ARTIFACTS`. */
  env?: Record<string, string>
}

export async function startHubProcess(place: HubPlace): Promise<HubProcess> {
  const { database, home, password, passwordCost, port = 0, skew = 0, env = {} } = place
  const given = [database, home, password, JSON.stringify(passwordCost), String(port), String(skew)]
  const waiting = new Map<number, (answer: Answer) => void>()
  const started = new Promise<Answer>(resolve => waiting.set(0, resolve))
  const child = Bun.spawn([process.execPath, PROGRAM, ...given], {
    env: { ...environmentAt(home), ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
    ipc(answer: Answer) {
      waiting.get(answer.id)?.(answer)
      waiting.delete(answer.id)
    },
  })
  const ended = child.exited.then(code => {
    throw new Error(`the hub ended with ${child.signalCode ?? code}`)
  })
  ended.catch(() => {})
  const { url } = await Promise.race([started, ended])
  let last = 0
  return {
    url: url!,
    child,
    async ask(ask, ms = 0) {
      const id = ++last
      const answered = new Promise<Answer>(resolve => waiting.set(id, resolve))
      child.send({ id, ask, ms } satisfies Question)
      return (await Promise.race([answered, ended])).lines
    },
    async stop() {
      child.kill('SIGTERM')
      const code = await child.exited
      if (code !== 0) throw new Error(`the hub ended with ${child.signalCode ?? code}`)
    },
  }
}

/** One address for several hubs. Calls go to the hubs in turn, as from a load balancer. */
export function alternate(urls: string[]): Bun.Server<unknown> {
  let turn = 0
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: 1024 ** 3,
    fetch({ method, url, headers, body, signal }) {
      const target = urls[turn++ % urls.length]! + url.slice(new URL(url).origin.length)
      return fetch(target, { method, headers, body, signal, redirect: 'manual', decompress: false })
    },
  })
}
