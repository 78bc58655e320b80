// What a store of files of runs can do. A file is named by its tree and its content, so that sending it again changes
// nothing, and no name that a daemon or a team chose becomes part of a key or a path.

import { CadreError } from '../../error.ts'

/** One content of one tree. */
export interface KeptFile {
  realm_id: string
  root_run_id: string
  /** In hexadecimal. */
  sha256: string
  bytes: number
}

/** How a daemon sends a file: with PUT and exactly these headers. */
export interface Upload {
  /** Null: to the hub itself. */
  url: string | null
  headers: Record<string, string>
}

export interface ArtifactStore {
  /** The greatest file that is taken, in bytes. */
  readonly most: number
  /** Whether the store has the whole file. */
  has(file: KeptFile): Promise<boolean>
  upload(file: KeptFile): Promise<Upload>
  /**
   * Takes a file that a daemon sends to the hub. Throws `invalid_request` when it is another content. Null when daemons
   * send files elsewhere.
   */
  readonly receive: ((file: KeptFile, content: ReadableStream<Uint8Array> | null) => Promise<void>) | null
  /** A reply with the content, or one that redirects to it. `name` is the name of the download. */
  download(file: KeptFile, name: string): Promise<Response>
  /** Removes a file; one that is missing is removed already. */
  remove(file: KeptFile): Promise<void>
  /** Removes what interrupted uploads left behind. `now`: the time as it stands, in epoch milliseconds. */
  tidy(now: number): Promise<void>
}

const UUID = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const KEY = new RegExp(`^${UUID}/${UUID}/[0-9a-f]{64}$`)

/** `<realm>/<top run>/<sha256>`. Throws for anything else than two UUIDs and a digest. */
export function objectKeyOf({ realm_id, root_run_id, sha256 }: KeptFile): string {
  const key = `${realm_id}/${root_run_id}/${sha256}`
  if (KEY.test(key)) return key
  throw new CadreError('invalid_request', 'a file of a run is stored under two UUIDs and its SHA-256 only')
}
