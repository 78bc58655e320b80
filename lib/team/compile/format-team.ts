// Formats the text of a team.yml, whose mistakes other than in its YAML are left to `validate`.

import { problemError } from '../model/model.ts'
import { decode, formatYaml, Source } from '../yaml/yaml.ts'

/** The text in the one layout. Throws `invalid_request` with the places of what cannot be read. */
export function formatTeam(file: string, bytes: Uint8Array): { before: string; after: string } {
  const before = decode(bytes)
  const source = new Source(file, before ?? '')
  if (before === null) source.report({ offset: 0, path: '' }, 'the file is not UTF-8 text')
  const after = before === null ? null : formatYaml(source)
  if (before === null || after === null) throw problemError(file, source.problems)
  // A byte order mark is no part of the text.
  const mark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? '\ufeff' : ''
  return { before: mark + before, after: mark + after }
}
