// The size limit of `data`. It is stored in the database and repeated in replies, so a larger result belongs in a file.

import { type FileRecord, MAX_DATA_BYTES } from '../../agent/agent-context.ts'
import { CadreError } from '../../error.ts'
import type { Json } from '../../json.ts'

/**
 * Returns `data` unchanged. Throws `too_large`, which names the largest file of the phase as the one to use instead.
 */
export function bounded<T extends Json>(data: T, phase: string, files: readonly FileRecord[]): T {
  const bytes = jsonBytes(data)
  if (bytes <= MAX_DATA_BYTES) return data
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

export function jsonBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value))
}
