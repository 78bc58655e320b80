// When a schedule would be due as its form stands, beside what holds now.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { PreviewTrigger } from '../../wire/calls/triggers.ts'
import { call } from '../kit/api.ts'
import { useLoaded } from '../kit/parts.tsx'
import type { SpecTexts, Texts } from './own-fields.ts'
import { inPlace, type Place, type Shown } from './place.ts'
import { type Rule, rulePart } from './spec-body.ts'
import { Notes, Slots } from './times.tsx'

/** How long a form waits for another letter before it asks. */
const PAUSE_MS = 250

/** A text that somebody types, once nothing more is typed. */
export function useSettled(text: string): string {
  const settled = useSignal(text)
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = text
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled.value
}

export function SlotPreview({ texts, place, before }: { texts: Texts; place: Place; before: Shown | undefined }) {
  const rule = texts.value.rule as Rule
  const asked = JSON.stringify(ruleOrNull(texts.value))
  const settled = useSettled(asked)
  const body = JSON.parse(settled)
  const isComplete = body !== null && (texts.value[rule]?.trim() ?? '') !== '' && body[rule] !== undefined
  const found = useLoaded(`preview ${settled}`, async () =>
    isComplete ? call(PreviewTrigger, { ...inPlace(place), ...body, limit: 5 }) : null,
  )
  const isSame = before !== undefined && found.data?.words === before.words
  return (
    <section class="card preview" aria-label="Preview" aria-live="polite">
      <h2>When it would be due</h2>
      {!isComplete && <p class="quiet">Say when, and the next times stand here.</p>}
      {found.error !== null && <p class="bad wrap">{messageOf(found.error)}</p>}
      {found.data && (
        <>
          <p class="wrap">{found.data.words}</p>
          {found.data.slots.length === 0 && <p class="quiet">It is not due any more.</p>}
          <Slots of={found.data.slots} {...(before && !isSame && { known: before.next })} />
          <Notes of={found.data.notes} />
          {before && !isSame && (
            <>
              <h3>As it is now</h3>
              <p class="wrap quiet">{before.words}</p>
              <Slots of={before.next} />
            </>
          )}
        </>
      )}
    </section>
  )
}

function ruleOrNull(texts: SpecTexts): object | null {
  try {
    return rulePart(texts)
  } catch {
    return null
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
