// Calls of the command line to the process that holds the home, with the local token. Replies are checked against the
// wire.

import type { Static, TSchema } from 'typebox'
import { formatDuration } from '../../../duration.ts'
import { CadreError } from '../../../error.ts'
import { sentEvents } from '../../../event-stream.ts'
import { COMMAND_LINE } from '../../../http/via.ts'
import { isObject } from '../../../json.ts'
import { chunksIn } from '../../../stream.ts'
import { type Answerer, type Call, checkedData, envelopeData, failureOf, plainData } from '../../../wire/call.ts'
import type { RunEvent } from '../../../wire/records/run-records.ts'
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

/** A client for the process that holds a home. */
export interface HomeClient extends Client {
  /** The content of a file of a run. Throws `not_found`. */
  artifact(runId: string, path: string): Promise<AsyncGenerator<Uint8Array, void>>
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
  over: (client: HomeClient) => Promise<T>,
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

/** A client for the process that listens at `address`. It loads records and calls when it is used, which most runs do not. */
export function createClient(home: string, address: string): HomeClient {
  const base = reachable(address)
  const headers = {
    'content-type': 'application/json',
    authorization: `Bearer ${readToken(home)}`,
    'user-agent': COMMAND_LINE,
  }

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
      const request = { method: 'POST', headers, body: JSON.stringify(body), keepalive: false, signal }
      const reply = await fetch(base + path, request)
      return { reply, answer: await reply.json() }
    } catch (cause) {
      signal.throwIfAborted()
      throw new CadreError('unavailable', `the process that serves ${home} at ${base} does not answer`, { cause })
    }
  }

  /** What is sent bit by bit in answer to a GET. */
  async function streamed(path: string, query: Record<string, string>, signal: AbortSignal) {
    const reply = await fetch(`${base}${path}?${new URLSearchParams(query)}`, { headers, keepalive: false, signal })
    if (reply.ok && reply.body) return reply.body
    const answer: unknown = await reply.json()
    throw failureOf(isObject(answer) ? answer.error : undefined, reply, from(path))
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
      const [{ StreamRun }, { EVENTS }] = await Promise.all([
        import('../../../wire/calls/runs.ts'),
        import('../../../wire/records/run-records.ts'),
      ])
      const { path } = StreamRun
      using watching = healthWatch()
      const until = AbortSignal.any([signal, watching.signal])
      const body = await streamed(path, { run_id: runId }, until)
      for await (const { name, data } of sentEvents(body)) yield eventOf(EVENTS, name, data, from(path))
    },
    async artifact(runId, path) {
      const { GetArtifact } = await import('../../../wire/calls/artifacts.ts')
      const watching = healthWatch()
      try {
        const body = await streamed(GetArtifact.path, { run_id: runId, path }, watching.signal)
        return watched(chunksIn(body), watching)
      } catch (thrown) {
        watching[Symbol.dispose]()
        watching.signal.throwIfAborted()
        if (thrown instanceof CadreError) throw thrown
        throw new CadreError('unavailable', `the process that serves ${home} at ${base} does not answer`, {
          cause: thrown,
        })
      }
    },
  }
}

/** The same chunks. `watching` ends with them. */
async function* watched(chunks: AsyncGenerator<Uint8Array, void>, watching: HealthWatch) {
  using _ = watching
  yield* chunks
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

type Events = typeof import('../../../wire/records/run-records.ts').EVENTS

/** Throws `unavailable` for an event that this version does not know. */
function eventOf(EVENTS: Events, name: string, data: unknown, from: Answerer): RunEvent {
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
