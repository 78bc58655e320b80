// Sends the files of synced runs to the store of the hub, a few at a time and streamed from the disk. A row says what is
// to be sent, until the hub has confirmed that the store has it. A file is named by its content, so that sending it again
// after a lost answer or a kill changes nothing.

import type { FileHandle } from 'node:fs/promises'
import { guardedFetch, type NetworkPolicy } from '../../agent/fetch.ts'
import { digestOf } from '../../agent/files/hashed-file.ts'
import { backoff } from '../../backoff.ts'
import { CadreError, messageOf } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import type { Log } from '../../log/log.ts'
import type { MaskedText } from '../../secrets/masked.ts'
import { startPause } from '../../wait.ts'
import { KeepFile, OfferFile, PutFile } from '../../wire/calls/hub-artifacts.ts'
import { isAbsentDaemon, PROTOCOL } from '../../wire/protocol.ts'
import { STORED_BYTES } from '../../wire/reasons.ts'
import type { HubClient } from './hub-client.ts'
import type { SyncOutbox, UploadRow } from './outbox/outbox.ts'

/** A file that is read by its handle until it is disposed. */
export interface OpenFile extends AsyncDisposable {
  bytes: number
  handle: FileHandle
  file: Bun.BunFile
}

export interface UploadsOptions {
  rows: SyncOutbox['uploads']
  client: HubClient
  log: Log
  signal: AbortSignal
  /** The lived time of the home. */
  lived(): number
  /** The id of this daemon. Throws `unavailable` while the hub does not know it. */
  daemonId(): string
  /** Opens a file of a run. Throws `not_found`. */
  fileOf(runId: RunId, path: string): Promise<OpenFile>
  /** `network.allow` of the settings: the hub cannot make this daemon call any other address that is not public. */
  network(): Omit<NetworkPolicy, 'literalOrigins'>
  mask(text: string): MaskedText
}

/** How many files are sent at the same time. */
export const LANES = 3
const LOOK_MS = 1_000
const LONGEST_PAUSE_MS = 10 * 60_000

/** What a signed upload may set. The hub cannot make this daemon send anything else. */
const SIGNED_HEADER = /^(content-length|content-type|x-amz-[a-z0-9-]+)$/i
/** The hub will never take this file. */
const NEVER: readonly string[] = ['not_found', 'too_large', 'invalid_request']
/** The hub cannot take any file now. */
const HUB_AWAY: readonly string[] = ['unavailable', 'rate_limited', 'unauthorized']

export class FileUploads {
  readonly #options: UploadsOptions
  /** The contents under way. The hub keeps each once in a tree, so a second file that has one waits, and is then there. */
  readonly #busy = new Set<string>()
  readonly #waiting = new Set<() => void>()
  /** The network policy at the last look; null before the first one. */
  #policy: string | null = null

  constructor(options: UploadsOptions) {
    this.#options = options
  }

  /** Ends the pauses of lanes that wait for a file. */
  wake(): void {
    for (const end of this.#waiting) end()
  }

  /** Sends one file that is due, or waits a moment for one. Throws when the hub cannot take any. */
  async step(): Promise<void> {
    const { rows } = this.#options
    const row = rows.due(this.#options.lived(), this.#busy)
    if (!row) return this.#idle()
    this.#busy.add(row.sha256)
    try {
      await this.#send(row)
      rows.drop(row)
    } catch (error) {
      this.#failed(row, error)
    } finally {
      this.#busy.delete(row.sha256)
    }
  }

  async #idle(): Promise<void> {
    this.#lookAtPolicy()
    const { over, end } = startPause(LOOK_MS, this.#options.signal)
    this.#waiting.add(end)
    await over
    this.#waiting.delete(end)
  }

  /** Files that failed are tried again at once when `network.allow` has changed, because it may allow the store now. */
  #lookAtPolicy(): void {
    const policy = JSON.stringify(this.#options.network())
    if (policy === this.#policy) return
    this.#policy = policy
    this.#options.rows.hurry()
  }

  async #send({ run_id, path, sha256, bytes }: UploadRow): Promise<void> {
    const { client, signal, daemonId, fileOf } = this.#options
    const offered = { daemon_id: daemonId(), protocol: PROTOCOL, run_id, sha256, bytes }
    const { stored, upload } = await client.call(OfferFile, offered, { signal })
    if (stored || upload === null) return
    await using found = await fileOf(run_id, path)
    await checkContent(found, { sha256, bytes }, signal)
    const { file } = found
    if (upload.url === null) {
      const query = { daemon_id: offered.daemon_id, run_id, sha256, bytes: String(bytes) }
      await client.put(PutFile, query, file, { signal })
    } else {
      await this.#put(upload.url, upload.headers, file)
    }
    await client.call(KeepFile, offered, { signal })
  }

  /** Sends a file to the URL that the hub has signed. */
  async #put(url: string, headers: Record<string, string>, file: Bun.BunFile): Promise<void> {
    const { signal, network } = this.#options
    const allowed = Object.entries(headers).filter(([name]) => SIGNED_HEADER.test(name))
    const send = guardedFetch({
      settings: null,
      network: { ...network(), literalOrigins: [] },
      effect: 'idempotent',
      signal,
      log: () => {},
    })
    const options = { method: 'PUT', headers: Object.fromEntries(allowed), body: file, follow: false }
    const reply = await send(url, options)
    if (reply.ok) return void (await reply.body?.cancel())
    const replyText = (await reply.text().catch(() => '')).replace(/\s+/g, ' ').slice(0, 300)
    throw new CadreError('conflict', `the store at ${new URL(url).origin} answered ${reply.status}: ${replyText}`)
  }

  #failed(row: UploadRow, error: unknown): void {
    const { rows, log, signal, lived, mask } = this.#options
    if (signal.aborted) return
    const code = error instanceof CadreError ? error.code : null
    if ((code !== null && HUB_AWAY.includes(code)) || isAbsentDaemon(error)) throw error
    const about = { run: row.run_id, path: row.path, error: messageOf(error) }
    const isForNow = error instanceof CadreError && error.reason === STORED_BYTES
    if (code !== null && NEVER.includes(code) && !isForNow) {
      log.warn('a file of a run stays on this machine only', about)
      rows.drop(row)
      return
    }
    if (row.failures === 0) log.warn('a file of a run could not be sent to the hub; trying again later', about)
    const dueAt = lived() + backoff(row.failures, { firstMs: 2_000, mostMs: LONGEST_PAUSE_MS })
    rows.later(row, dueAt, mask(about.error))
  }
}

/** Throws `not_found` unless the file still has the content that was recorded. */
async function checkContent(
  { handle, bytes }: OpenFile,
  recorded: { sha256: string; bytes: number },
  signal: AbortSignal,
): Promise<void> {
  const same = bytes === recorded.bytes && (await digestOf(handle, signal)).sha256 === recorded.sha256
  if (!same) throw new CadreError('not_found', 'it was changed after its phase had recorded it')
}
