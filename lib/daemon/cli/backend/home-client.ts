// Calls of the command line to the process that holds the home, with the local token. Replies are checked against the
// wire.

import type { Static, TSchema } from 'typebox'
import { formatDuration } from '../../../duration.ts'
import { CadreError } from '../../../error.ts'
import { sentEvents } from '../../../event-stream.ts'
import { isObject } from '../../../json.ts'
import { type Answerer, type Call, checkedData, envelopeData, failureOf, plainData } from '../../../wire/call.ts'
import { StreamRun } from '../../../wire/calls/runs.ts'
import { EVENTS, type RunEvent } from '../../../wire/records/run-records.ts'
import { readToken } from '../../home/home.ts'
import { type Holder, holderOf } from '../../home/lock.ts'
import { HealthWatch } from './health-watch.ts'

/** Who answers calls of the daemon's API: another process, or this one. */
export interface Callee {
  call<Body extends TSchema, Data extends TSchema>(call: Call<Body, Data>, body: Static<Body>): Promise<Static<Data>>
}

export interface Client extends Callee {
  /** Events of a run until it ends. */
  events(runId: string, signal: AbortSignal): AsyncGenerator<RunEvent>
}

/** How long to wait for an address. A process that has just taken the home, or is about to release it, has none. */
const PATIENCE_MS = 10_000
const LOOK_MS = 20

/** After a process is killed, its connections break a moment before its pid is seen to be gone. */
const GONE_MS = 1_000

/**
 * Calls `over` with the process that holds `home`, or `alone` when none does. If that process releases the home in
 * between, or dies, the next holder is asked, so `over` may be called more than once. Throws `unavailable` when a
 * process holds the home and does not serve it.
 */
export async function withHome<T>(
  home: string,
  over: (client: Client) => Promise<T>,
  alone: () => Promise<T>,
): Promise<T> {
  for (;;) {
    const holder = await servingHolder(home)
    if (!holder) return alone()
    try {
      return await over(createClient(home, holder.address))
    } catch (thrown) {
      if (!(await letGo(home, holder, thrown))) throw thrown
    }
  }
}

/** The address of the process that holds `home`, or null when none does. Throws `unavailable` when it does not serve. */
export async function addressOf(home: string): Promise<string | null> {
  const holder = await servingHolder(home)
  return holder && reachable(holder.address)
}

/** A process that listens on every address is called on loopback. */
function reachable(address: string): string {
  return address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

async function servingHolder(home: string): Promise<(Holder & { address: string }) | null> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const holder = holderOf(home)
    if (!holder) return null
    const { pid, command, address } = holder
    if (address !== null) return { ...holder, address }
    if (performance.now() > deadline) {
      throw new CadreError(
        'unavailable',
        `process ${pid} (${command}) holds ${home} and does not answer; try again later`,
      )
    }
    await Bun.sleep(LOOK_MS)
  }
}

/** Whether a call failed because `holder` no longer holds the home. */
async function letGo(home: string, holder: Holder, thrown: unknown): Promise<boolean> {
  if (!(thrown instanceof CadreError) || thrown.code !== 'unavailable') return false
  const deadline = performance.now() + GONE_MS
  while (performance.now() < deadline) {
    const now = holderOf(home)
    if (now?.pid !== holder.pid || now.address !== holder.address) return true
    await Bun.sleep(LOOK_MS)
  }
  return false
}

/** A client for the process that listens at `address`. */
export function createClient(home: string, address: string): Client {
  const base = reachable(address)
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${readToken(home)}` }

  const from = (path: string): Answerer => {
    return { url: base + path, kind: 'daemon', advice: `check which program listens at ${base}` }
  }

  const healthWatch = () => new HealthWatch(base, silentMs => stuck(home, base, silentMs))

  async function post(path: string, body: object): Promise<{ reply: Response; answer: unknown }> {
    using watching = healthWatch()
    const { signal } = watching
    try {
      // Each call has its own connection. A kept connection may be cut while idle, and then nobody knows whether the
      // call arrived.
      const asked = { method: 'POST', headers, body: JSON.stringify(body), keepalive: false, signal }
      const reply = await fetch(base + path, asked)
      return { reply, answer: await reply.json() }
    } catch (cause) {
      signal.throwIfAborted()
      throw new CadreError('unavailable', `the process that serves ${home} at ${base} does not answer`, { cause })
    }
  }

  return {
    async call({ path, data, envelope }, body) {
      if (envelope === undefined) {
        const { reply, answer } = await post(path, Object(body))
        return plainData(data, answer, reply, from(path))
      }
      const message = { type: envelope, version: 1, id: crypto.randomUUID(), timestamp: Date.now(), payload: body }
      const { reply, answer } = await post(path, message)
      return envelopeData(data, answer, reply, from(path))
    },
    async *events(runId, signal) {
      const { path } = StreamRun
      using watching = healthWatch()
      const until = AbortSignal.any([signal, watching.signal])
      const reply = await fetch(`${base}${path}?run_id=${encodeURIComponent(runId)}`, { headers, signal: until })
      if (!reply.ok || !reply.body) {
        const answer: unknown = await reply.json()
        throw failureOf(isObject(answer) ? answer.error : undefined, reply, from(path))
      }
      for await (const { name, data } of sentEvents(reply.body)) yield eventOf(name, data, from(path))
    },
  }
}

/** The error that a command ends with when the process that it asks is stopped, or does not come to answer. */
export function stuck(home: string, base: string, silentMs: number): CadreError {
  const holder = holderOf(home)
  if (!holder) return new CadreError('unavailable', `the process that serves ${home} at ${base} does not answer`)
  const { pid, command } = holder
  return new CadreError(
    'unavailable',
    `process ${pid} (${command}) holds ${home} and has not answered for ${formatDuration(silentMs)}: ` +
      `\`kill -CONT ${pid}\` continues it if it was stopped; otherwise end it with \`kill -9 ${pid}\`, ` +
      'and start it again to continue what it has recorded',
  )
}

/** Throws `unavailable` for an event that this version does not know. */
function eventOf(name: string, data: unknown, from: Answerer): RunEvent {
  switch (name) {
    case 'run':
    case 'end':
      return { event: name, data: checkedData(EVENTS[name], data, from) }
    case 'phase':
      return { event: name, data: checkedData(EVENTS[name], data, from) }
    case 'log':
      return { event: name, data: checkedData(EVENTS[name], data, from) }
    default:
      throw new CadreError('unavailable', `${from.url} sent an event ${name}, which this program does not know`)
  }
}
