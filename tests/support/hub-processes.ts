// Starts several hubs as processes on one database, sends requests to them over IPC, and puts one address in front of
// them.

import { resolve } from 'node:path'
import { environmentAt } from './program.ts'
import type { HubPlace, ServedHub } from './served-hub.ts'

const PROGRAM = resolve(import.meta.dir, 'hub-process.ts')

export interface Question {
  id: number
  /** The hub to serve from now on. */
  place?: HubPlace
  ask?: Parameters<ServedHub['ask']>[0] | 'stop'
  ms?: number
}

export interface Answer {
  /** The id of the question. */
  id: number
  url: string
  lines: string[]
}

export interface HubProcess extends ServedHub {
  child: Bun.Subprocess
}

interface Worker {
  child: Bun.Subprocess
  /** Throws when the process has ended. */
  answer(question: Omit<Question, 'id'>): Promise<Answer>
}

/** Processes whose hub was stopped. */
const idle: Worker[] = []

function startWorker(home: string): Worker {
  const waiting = new Map<number, (answer: Answer) => void>()
  const child = Bun.spawn([process.execPath, PROGRAM], {
    env: environmentAt(home),
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
  let last = 0
  return {
    child,
    answer(question) {
      const id = ++last
      const answered = new Promise<Answer>(resolve => waiting.set(id, resolve))
      child.send({ ...question, id } satisfies Question)
      return Promise.race([answered, ended])
    },
  }
}

export async function startHubProcess(place: HubPlace): Promise<HubProcess> {
  const worker = idle.pop() ?? startWorker(place.home)
  const { url } = await worker.answer({ place })
  return {
    url,
    child: worker.child,
    ask: async (ask, ms) => (await worker.answer({ ask, ...(ms !== undefined && { ms }) })).lines,
    async stop() {
      await worker.answer({ ask: 'stop' })
      idle.push(worker)
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
