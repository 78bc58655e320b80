// A clock that a test sets for other processes, while they run. Their monotonic clock goes on as it is. It needs
// libfaketime, which the package `faketime` brings.

import { chmodSync, existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from './folder.ts'

const LIBRARY = [...new Bun.Glob('/usr/lib/**/faketime/libfaketimeMT.so.1').scanSync({ absolute: true })]
  .concat('/usr/lib/faketime/libfaketimeMT.so.1', '/usr/local/lib/faketime/libfaketimeMT.so.1')
  .find(path => existsSync(path))

export interface FakeClock {
  /** The variables of a process with this clock. */
  readonly env: Record<string, string>
  /** By how much the clock is ahead from now on. */
  set(ms: number): void
}

/** Null where libfaketime is missing, which is said on the console. */
export function fakeClock(): FakeClock | null {
  if (LIBRARY === undefined) {
    console.warn('libfaketime is missing (package faketime): the tests with steps of the clock are skipped')
    return null
  }
  const place = folder()
  // Servers that run as another user read it, too.
  chmodSync(place, 0o755)
  const file = join(place, 'clock')
  const set = (ms: number) => {
    // Nobody reads half of it.
    writeFileSync(`${file}.new`, `${ms < 0 ? '' : '+'}${ms / 1_000}\n`, { mode: 0o644 })
    renameSync(`${file}.new`, file)
  }
  set(0)
  const env = {
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  }
  return { env, set }
}
