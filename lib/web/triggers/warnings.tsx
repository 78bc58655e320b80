// What somebody should know who has just added, changed or enabled a trigger. It stands on the page of the trigger until
// that is left.

import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { LongText } from '../kit/parts.tsx'
import type { Shown } from './place.ts'

type Changed = Pick<Shown, 'id' | 'warnings'>

const last = signal<Changed | null>(null)

/** Remembers what the reply to a change says. */
export function told<T extends Changed>(changed: T): T {
  last.value = changed
  return changed
}

export function Warnings({ of: { id } }: { of: Changed }) {
  const forget = () => {
    last.value = null
  }
  useEffect(() => forget, [])
  const warnings = last.value?.id === id ? (last.value.warnings ?? []) : []
  if (warnings.length === 0) return null
  return (
    <div class="notice awaiting_input" role="status">
      {warnings.map(text => (
        <p key={text}>
          <LongText text={text} />
        </p>
      ))}
    </div>
  )
}
