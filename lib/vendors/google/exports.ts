// In which forms documents of Google can be downloaded. They have no bytes of their own
// (https://developers.google.com/workspace/drive/api/guides/ref-export-formats).

import { AgentError } from '../../agent/core/agent-error.ts'

const GOOGLE = 'application/vnd.google-apps.'
/** The form of each kind of document if nobody chooses one. */
const EXPORTS: Record<string, string> = {
  document: 'text/plain',
  spreadsheet: 'text/csv',
  presentation: 'text/plain',
  drawing: 'image/png',
}
const OFFICE = 'application/vnd.openxmlformats-officedocument.'
/** By the names that people may use in place of MIME types. */
const TYPES: Record<string, string> = {
  docx: `${OFFICE}wordprocessingml.document`,
  xlsx: `${OFFICE}spreadsheetml.sheet`,
  pptx: `${OFFICE}presentationml.presentation`,
  pdf: 'application/pdf',
  md: 'text/markdown',
  html: 'text/html',
  txt: 'text/plain',
  csv: 'text/csv',
}

export const EXPORT_NAMES: readonly string[] = Object.keys(TYPES)

/** The MIME type as which a Google document is exported; null for an ordinary file, which is downloaded as it is. */
export function exportTypeOf(
  { id, mimeType }: { id: string; mimeType: string },
  as: string | undefined,
  { callName }: { callName: string },
): string | null {
  const kind = mimeType.startsWith(GOOGLE) ? mimeType.slice(GOOGLE.length) : null
  const type = as === undefined ? EXPORTS[kind ?? ''] : (TYPES[as] ?? as)
  if (kind !== null && type) return type
  if (kind === null && as === undefined) return null
  const why = kind === null ? 'is a file, which cannot be exported' : `is a ${kind}, which has no default export format`
  const hint = kind === null ? 'leave out `export`' : 'set `export` to a MIME type'
  throw new AgentError(`[${callName}] ${id} ${why}`, { code: 'invalid_request', hint })
}
