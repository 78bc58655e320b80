// How much a reply may hold, on hub and daemon alike, so that no list keeps a server from its other callers. A list gives
// fewer items and is gone on with by `offset`, a log by `after_seq`. Pure.

/** The bytes of JSON that the items of a list, the phases of a run or the lines of a log may have in one reply. */
export const REPLY_BYTES = 4 * 1024 * 1024

/** What stands of `inputs` and `outputs` in lists and events; of larger ones only the number of bytes. */
export const VALUE_BYTES = 2 * 1024
/** What stands of an error in lists and events. */
export const ERROR_BYTES = 1024

/**
 * The maximum size of a change that a daemon reports, in bytes of JSON. The sender keeps each change below it, and the hub
 * refuses larger ones.
 */
export const MAX_CHANGE_BYTES = 1024 * 1024

/** The bytes of a value as JSON. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '')

/** The first of `items` whose sizes fit into `room`, and one at least, so that a reader always gets on. */
export function within<T>(items: readonly T[], sizeOf: (item: T) => number = jsonBytes, room = REPLY_BYTES): T[] {
  let bytes = 0
  const end = items.findIndex((item, at) => {
    bytes += sizeOf(item) + 1
    return at > 0 && bytes > room
  })
  return end === -1 ? [...items] : items.slice(0, end)
}

/** Which of some values stand in a reply: the largest are left out until the others fit into `room`. */
export function fitting(sizes: readonly number[], room: number): boolean[] {
  const fits = sizes.map(() => true)
  let bytes = sizes.reduce((sum, size) => sum + size, 0)
  const largest = sizes.map((size, at) => ({ size, at })).sort((a, b) => b.size - a.size)
  for (const { size, at } of largest) {
    if (bytes <= room) break
    fits[at] = false
    bytes -= size
  }
  return fits
}

interface Failure {
  code?: unknown
  message?: unknown
}

/** An error of a run or of a phase as lists have it: the whole if it is short, otherwise what it begins with. */
export function briefError<T>(error: T): T {
  if (error === null || error === undefined || jsonBytes(error) <= ERROR_BYTES) return error
  const { code, message } = Object(error) as Failure
  const text = typeof message === 'string' ? message : JSON.stringify(error)
  const kept = { ...shortNames(Object(error)), code: cut(typeof code === 'string' ? code : 'error', 100) }
  return { ...kept, message: cut(text, ERROR_BYTES / 2 - jsonBytes(kept) / 2) } as T
}

/** The names in an error that lead to where it began. */
function shortNames({ phase, run_id }: { phase?: unknown; run_id?: unknown }): object {
  const short = (name: unknown) => typeof name === 'string' && jsonBytes(name) <= 200
  return { ...(short(phase) && { phase }), ...(short(run_id) && { run_id }) }
}

/** Text that has at most `most` bytes as JSON, with … where it was cut. */
export function cut(text: string, most: number): string {
  if (text.length <= most && jsonBytes(text) <= most) return text
  let kept = text.slice(0, most)
  for (let over = jsonBytes(kept) + 3 - most; over > 0; over = jsonBytes(kept) + 3 - most) {
    kept = kept.slice(0, Math.max(0, kept.length - Math.ceil(over / 6)))
    if (kept === '') break
  }
  return `${kept.toWellFormed()}…`
}

/** Long lists are counted up to here. */
export const MOST_COUNTED = 10_000
