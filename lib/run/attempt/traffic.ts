// What a call of an agent has sent so far. A call that sent only reads has written nothing, whatever became of them.

import type { ContextHooks } from '../core/core.ts'

export interface Traffic {
  hooks: Pick<ContextHooks, 'sends'>
  /** False before anything was sent, because an agent may use a client of its own without saying so. */
  onlyRead(): boolean
}

export function watchTraffic(): Traffic {
  let reads = false
  let writes = false
  const sends = (mayWrite: boolean) => {
    if (mayWrite) writes = true
    else reads = true
  }
  return { hooks: { sends }, onlyRead: () => reads && !writes }
}
