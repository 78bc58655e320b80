// What surrounds each call of an agent's function: it must stop within the time after its signal, the files that it reads
// stay open until it has settled, and what it sends is noted.

import type { FileHandle } from 'node:fs/promises'
import { AgentError } from '../../agent/core/agent-error.ts'
import { Limit } from '../../lived-time.ts'
import type { ContextHooks, WriteResult } from '../core/core.ts'
import { UnknownWrite } from './ledger.ts'

/** How long an agent has to stop after its signal has fired: a cancel promises to reach everything within five seconds. */
export const STOP_MS = 4_000

/** The result of `work`. Throws an AgentError when `work` has not settled `stopMs` after `signal` fired. */
export function endWithSignal<T>(work: Promise<T>, signal: AbortSignal, stopMs = STOP_MS): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let limit: Limit | undefined
    const startLimit = () => {
      limit = new Limit(stopMs, () => {
        const message = `the agent did not stop within ${stopMs / 1_000} s after it was asked to`
        reject(new AgentError(message, { code: 'aborted', cause: signal.reason }))
      })
    }
    if (signal.aborted) startLimit()
    else signal.addEventListener('abort', startLimit, { once: true })
    const endLimit = () => {
      limit?.end()
      signal.removeEventListener('abort', startLimit)
    }
    // A result that comes after the rejection is dropped.
    work.then(
      result => {
        endLimit()
        resolve(result)
      },
      thrown => {
        endLimit()
        reject(thrown)
      },
    )
  })
}

interface OpenFiles {
  hooks: Pick<ContextHooks, 'holds'>
  /** Does `work`, and closes the files when it has settled. */
  closeAfter<T>(work: () => Promise<T> | T): Promise<T>
}

/**
 * Keeps the files open that one call reads, so that no command can put other files in their place. A call that ignores
 * its signal may still read them, so they are not closed when the engine stops to wait for the call.
 */
export function keepFilesOpen(): OpenFiles {
  const handles: FileHandle[] = []
  return {
    hooks: { holds: handle => void handles.push(handle) },
    async closeAfter(work) {
      try {
        return await work()
      } finally {
        if (handles.length > 0) await Promise.all(handles.splice(0).map(handle => handle.close()))
      }
    },
  }
}

interface SentRequests {
  hooks: Pick<ContextHooks, 'sends'>
  /** Whether the call has sent only reads, and so has written nothing. False before it has sent anything. */
  onlyRead(): boolean
}

/** Notes what a call sends. An agent may use a client of its own without saying so, hence the false above. */
export function noteRequests(): SentRequests {
  let reads = false
  let writes = false
  const sends = (mayWrite: boolean) => {
    if (mayWrite) writes = true
    else reads = true
  }
  return { hooks: { sends }, onlyRead: () => reads && !writes }
}

/**
 * Returns `write`, and tells what came of it. An entry that an earlier attempt has written is not told again: another
 * system was not `asked` for it.
 */
export async function noteWrite<T>(
  write: Promise<T>,
  { asked, tell }: { asked(): boolean; tell(result: WriteResult): void },
): Promise<T> {
  try {
    const result = await write
    if (asked()) tell('written')
    return result
  } catch (thrown) {
    if (thrown instanceof UnknownWrite) tell('doubtful')
    else if (asked()) tell('failed')
    throw thrown
  }
}
