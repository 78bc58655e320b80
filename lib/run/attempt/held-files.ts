// The files that one call of an agent reads, held open so that they stay the same ones. A call that does not stop when it
// is asked to may still read them, so they are closed when its work has settled, and not when it is given up.

import type { FileHandle } from 'node:fs/promises'
import type { ContextHooks } from '../core/core.ts'

export interface HeldFiles {
  hooks: Pick<ContextHooks, 'holds'>
  /** Returns `work`, and closes the files behind it. */
  during<T>(work: Promise<T>): Promise<T>
}

export function holdFiles(): HeldFiles {
  const held: FileHandle[] = []
  return {
    hooks: { holds: handle => void held.push(handle) },
    during: work => work.finally(() => Promise.all(held.splice(0).map(handle => handle.close()))),
  }
}
