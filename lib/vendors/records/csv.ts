// CSV as RFC 4180 has it: fields in quotes may have the delimiter, line breaks, and quotes that are doubled. What the RFC
// does not allow is an error with its line, because a guess would put values into wrong columns.

import { AgentError } from '../../agent/core/agent-error.ts'
import type { Json, JsonObject } from '../../json.ts'

/** A longer record is no record, but a file with a quote that nobody closed. In characters. */
const LONGEST = 1024 * 1024

/** A record, with the line on which it begins. */
export interface Row {
  line: number
  fields: string[]
}

/** The records of a text that comes in pieces, without those that are empty lines. */
export async function* rowsOf(chunks: AsyncIterable<string>, delimiter = ','): AsyncGenerator<Row, void> {
  let fields: string[] = []
  let field = ''
  let size = 0
  /** In quotes; `closed` after the second quote, which may be the first half of a doubled one. */
  let state: 'bare' | 'quoted' | 'closed' = 'bare'
  let isEmptyLine = true
  let line = 1
  let begun = 1
  let last = ''
  const refuse = (why: string) =>
    new AgentError(`line ${line} ${why}`, {
      code: 'invalid_request',
      hint: 'check that it is CSV, and its `delimiter`',
    })
  const end = (): Row[] => {
    const row = { line: begun, fields: [...fields, field] }
    const rows = isEmptyLine ? [] : [row]
    ;[fields, field, size, state, isEmptyLine] = [[], '', 0, 'bare', true]
    return rows
  }
  for await (const chunk of chunks) {
    for (const char of last === '' ? chunk.replace(/^\uFEFF/, '') : chunk) {
      const isRestOfBreak = char === '\n' && last === '\r'
      const isBreak = char === '\n' || char === '\r'
      last = char
      if (isBreak && !isRestOfBreak) line++
      if (++size > LONGEST) throw refuse('belongs to a record of more than 1 MiB: a quote may not be closed')
      if (state === 'quoted') {
        if (char === '"') state = 'closed'
        else field += char
      } else if (isBreak) {
        if (!isRestOfBreak) yield* end()
        begun = line
      } else {
        isEmptyLine = false
        if (char === delimiter) {
          fields.push(field)
          field = ''
          state = 'bare'
        } else if (char === '"' && (state === 'closed' || field === '')) {
          if (state === 'closed') field += char
          state = 'quoted'
        } else if (char === '"') throw refuse('has a quote inside a field without quotes')
        else if (state === 'closed') throw refuse('has text behind a field in quotes')
        else field += char
      }
    }
  }
  if (state === 'quoted') throw refuse('is the last one, and a quote is not closed')
  yield* end()
}

/** The records as objects, by the names in the first one. */
export async function* recordsOfCsv(rows: AsyncIterable<Row>): AsyncGenerator<JsonObject, void> {
  let names: string[] | null = null
  for await (const { line, fields } of rows) {
    const refuse = (why: string, hint?: string) =>
      new AgentError(`line ${line} ${why}`, { code: 'invalid_request', ...(hint && { hint }) })
    if (names === null) {
      const wrong = fields.find((name, at) => name === '' || fields.indexOf(name) < at)
      if (wrong !== undefined)
        throw refuse(wrong === '' ? 'has a column without a name' : `names the column ${JSON.stringify(wrong)} twice`)
      names = fields
      continue
    }
    if (fields.length !== names.length) {
      const message = `has ${fields.length} fields, but the first line names ${names.length} columns`
      throw refuse(message, 'check that it is CSV, and its `delimiter`')
    }
    yield Object.fromEntries(names.map((name, at) => [name, fields[at]!]))
  }
}

/** A record as a line. Null and what is absent are empty, objects and lists are JSON. */
export function csvLine(values: readonly (Json | undefined)[], delimiter = ','): string {
  const texts = values.map(value =>
    value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value),
  )
  const quoted = texts.map(text =>
    text.includes(delimiter) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text,
  )
  // A line without anything would be no record.
  return `${quoted.length === 1 && quoted[0] === '' ? '""' : quoted.join(delimiter)}\r\n`
}
