// What a watch or a chain would do as its form stands: in words, and of a watch the files that would count.

import { sizeText } from '../../size.ts'
import { PreviewTrigger } from '../../wire/calls/triggers.ts'
import { call } from '../kit/api.ts'
import { useLoaded } from '../kit/parts.tsx'
import { When } from '../kit/time.tsx'
import { ownPart, type SpecTexts, type Texts } from './own-fields.ts'
import { inPlace, type Place } from './place.ts'
import { messageOf, useSettled } from './slot-preview.tsx'

const SHOWN = 10

export function SourcePreview({ texts, place }: { texts: Texts; place: Place }) {
  const settled = useSettled(JSON.stringify(partOrNull(texts.value)))
  const body = JSON.parse(settled)
  const isComplete = body !== null && (body.folder ?? body.after) !== undefined
  const { data, error } = useLoaded(`source ${settled}`, async () =>
    isComplete ? call(PreviewTrigger, { ...inPlace(place), ...body, limit: SHOWN }) : null,
  )
  const { files, total = 0, words } = data ?? {}
  return (
    <section class="card preview" aria-label="Preview" aria-live="polite">
      <h2>When it would start</h2>
      {!isComplete && <p class="quiet">Say after what, and it stands here in words.</p>}
      {error !== null && <p class="bad wrap">{messageOf(error)}</p>}
      {words !== undefined && <p class="wrap">{words}</p>}
      {files && (
        <>
          <h3>{files.length === 0 ? 'No file of the folder counts now' : 'Files of the folder that count'}</h3>
          <ul class="slots">
            {files.map(({ path, bytes, mtime }) => (
              <li key={path}>
                <span class="wrap">{path}</span>
                <span class="quiet small">
                  {sizeText(bytes)}, <When at={mtime} />
                </span>
              </li>
            ))}
          </ul>
          {total > files.length && <p class="quiet small">and {total - files.length} more</p>}
        </>
      )}
    </section>
  )
}

function partOrNull(texts: SpecTexts): object | null {
  try {
    return ownPart(texts)
  } catch {
    return null
  }
}
