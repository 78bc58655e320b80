// The hub's client for the calls of a daemon, which carry what the daemon remembers of the hub's database.

import type { Static, TSchema } from 'typebox'
import { isObject } from '../../json.ts'
import type { Call } from '../../wire/call.ts'
import { Ack, Heartbeat, Poll, Register, Sync } from '../../wire/calls/daemon-link.ts'
import { CALLER_HEADER, type Remembered } from '../../wire/protocol.ts'
import { type CallOptions, HubClient } from './hub-client.ts'

const PATHS: readonly string[] = [Register, Heartbeat, Poll, Ack, Sync].map(({ path }) => path)

export class DaemonClient extends HubClient {
  readonly #callFields: () => { memory?: Remembered }
  readonly #learn: (memory: Remembered | undefined) => void

  constructor(
    url: string,
    token: string | null,
    callFields: () => { memory?: Remembered },
    learn: (memory: Remembered | undefined) => void,
  ) {
    super(url, token)
    this.#callFields = callFields
    this.#learn = learn
  }

  override async call<Body extends TSchema, Data extends TSchema>(
    call: Call<Body, Data>,
    body: Static<Body>,
    options: CallOptions = {},
  ): Promise<Static<Data>> {
    if (!PATHS.includes(call.path)) return super.call(call, body, options)
    const { daemon_id } = body as { daemon_id?: string }
    const headers = { ...options.headers, ...(daemon_id !== undefined && { [CALLER_HEADER]: daemon_id }) }
    const sent = { ...(body as object), ...this.#callFields() } as Static<Body>
    const reply = await super.call(call, sent, { ...options, headers })
    if (isObject(reply)) this.#learn(reply.memory as Remembered | undefined)
    return reply
  }
}
