// The size limit of `data`. It is stored in the database and repeated in replies, so a larger result belongs in a file.

import { type FileRecord, MAX_DATA_BYTES } from '../../agent/agent-context.ts'
import { CadreError } from '../../error.ts'
import type { Json } from '../../json.ts'
import { type Masked, maskedJson } from '../../secrets/masked.ts'
import { JsonText } from './rows.ts'

/**
 * `data` as it is stored. Throws `too_large`, which names the largest file of the phase as the one to use instead.
 */
export function bounded(data: Masked<Json>, phase: string, files: readonly FileRecord[]): JsonText {
  const text = maskedJson(data)
  const bytes = Buffer.byteLength(text)
  if (bytes <= MAX_DATA_BYTES) return new JsonText(text)
  const largest = files.reduce<FileRecord | null>(
    (most, file) => (most && most.bytes >= file.bytes ? most : file),
    null,
  )
  throw new CadreError(
    'too_large',
    `the result has ${bytes} bytes of data, but at most ${MAX_DATA_BYTES} are kept: ` +
      (largest ? `use the file ${largest.path} instead` : `let the phase write a file files/${phase}/<name> instead`),
  )
}
