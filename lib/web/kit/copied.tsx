// Says above the runs that the home was copied, as long as runs wait for a person because of it.

import { health } from './api.ts'
import { command } from './command.ts'
import { useLoaded } from './parts.tsx'

const LOOK_MS = 10_000

export function Copied() {
  const runs = useLoaded('copied', health, LOOK_MS).data?.copied?.runs ?? 0
  if (runs === 0) return null
  return (
    <div class="notice awaiting_input" role="status">
      <p>
        This home was copied or moved. {runs === 1 ? 'One run was' : `${runs} runs were`} unfinished, and may have gone
        on at the other place. Nothing of {runs === 1 ? 'it' : 'them'} happens here until you resume or cancel{' '}
        {runs === 1 ? 'it' : 'each'}. <code>{command} status</code> says where the home was.
      </p>
    </div>
  )
}
