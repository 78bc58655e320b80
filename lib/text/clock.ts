// The time of day as the clock on the wall shows it. The first local time of a `Date` takes more than a short command has
// (measured: 13 ms of 254 ms of processor time), because JavaScriptCore then looks at every time zone that it knows. SQLite
// asks the C library, which has read that of this machine already.

import { Database } from 'bun:sqlite'

let asked: ReturnType<typeof prepared> | undefined

const prepared = () =>
  new Database(':memory:').query<{ text: string }, [seconds: number]>(
    "SELECT strftime('%H:%M:%S', ?, 'unixepoch', 'localtime') AS text",
  )

/** `09:05:00`. `at` is in milliseconds since 1970. */
export function clockText(at: number): string {
  asked ??= prepared()
  return asked.get(at / 1_000)!.text
}
