// What a phase hands on as `data` stands in the database and in replies: what is larger belongs into a file.

import type { FileRecord } from '../../agent/define.ts'
import { CadreError } from '../../error.ts'
import type { Json } from '../../json.ts'

export const MAX_DATA_BYTES = 1_048_576

/** `data` as it is. Throws `too_large` with the file of the phase to use instead. */
export function bounded<T extends Json>(data: T, phase: string, files: readonly FileRecord[]): T {
  const bytes = jsonBytes(data)
  if (bytes <= MAX_DATA_BYTES) return data
  const largest = files.reduce<FileRecord | null>(
    (most, file) => (most && most.bytes >= file.bytes ? most : file),
    null,
  )
  throw new CadreError(
    'too_large',
    `the result has ${bytes} bytes of data, at most ${MAX_DATA_BYTES} are kept: ` +
      (largest ? `use the file ${largest.path} instead` : `let the phase write a file files/${phase}/<name> instead`),
  )
}

export function jsonBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value))
}
