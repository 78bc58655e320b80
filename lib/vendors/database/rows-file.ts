// Writes the rows of a query to a file, as JSON or CSV, while they are read.

import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { type ListingForm, writeListing } from '../../agent/listing.ts'
import type { Json, JsonObject } from '../../json.ts'
import type { Batch } from './database.ts'

/**
 * Writes up to `limit` rows to the file `name`: CSV (RFC 4180) if it ends in .csv, else the JSON of a listing. Returns
 * the `data` of the result, and whether the query has more rows. Throws when two columns have the same name.
 */
export async function writeRows(
  context: AgentContext<unknown>,
  { name, limit, batches }: { name: string; limit: number; batches: AsyncGenerator<Batch, void> },
) {
  let columns: string[] = []
  let rows = 0
  let ahead = await batches.next()
  const page = async (at = 0) => {
    if (ahead.done) return { items: [] }
    const batch = ahead.value
    columns = batch.columns
    const twice = columns.find((column, index) => columns.indexOf(column) !== index)
    if (twice !== undefined) {
      const message = `[${context.callName}] two columns are named ${JSON.stringify(twice)}`
      throw new AgentError(message, { code: 'invalid_request', hint: 'rename one of them with AS', sent: 'no' })
    }
    ahead = await batches.next()
    rows += batch.rows.length
    const items = batch.rows.map(row => Object.fromEntries(columns.map((column, at) => [column, row[at]!])))
    return { items, next: ahead.done ? null : at + 1 }
  }
  const form = /\.csv$/i.test(name) ? { form: csv(() => columns) } : {}
  try {
    const listing = await writeListing(context, { name, limit, page, brief: row => row, ...form })
    return { data: { columns, ...listing }, more: rows > limit }
  } finally {
    await batches.return()
  }
}

function csv(columns: () => string[]): ListingForm<JsonObject> {
  const line = (values: Json[]) => `${values.map(field).join(',')}\r\n`
  return {
    open: '',
    item: (row, at) => (at === 0 ? line(columns()) : '') + line(columns().map(column => row[column]!)),
    close: ({ total }) => (total === 0 ? line(columns()) : ''),
  }
}

/** NULL is an empty field, and an empty text is `""`, so that they stay different. */
function field(value: Json): string {
  if (value === null) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text === '' || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
