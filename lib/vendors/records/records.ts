// Lists of records in files, in the form that the name of the file says: CSV, one JSON value a line (.jsonl, .ndjson), or
// a JSON list. CSV and lines are read and written piece by piece, so they may be of any size; JSON is read as a whole.

import type { AgentContext, FileRecord } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { DATA_BYTES } from '../../agent/listing.ts'
import { isObject, type Json, type JsonObject } from '../../json.ts'
import { chunksIn, streamOf } from '../../stream.ts'
import { endTurn } from '../../turns.ts'
import { csvLine, recordsOfCsv, rowsOf } from './csv.ts'

type Context = AgentContext<unknown>
type Form = 'csv' | 'lines' | 'json'

/** The most that a file of JSON may have. */
const JSON_BYTES = 64 * 1024 * 1024
/** In characters. */
const LONGEST_LINE = 1024 * 1024
/** Characters that are written together. */
const PIECE = 64 * 1024

/** Where a list comes from: a value, or a file. */
export interface Given {
  items?: Json[] | undefined
  file?: string | undefined
  /** The field of a JSON file that is the list, such as `data.tasks`. */
  at?: string | undefined
  delimiter?: string | undefined
}

/** How a list is written as CSV. */
interface Written {
  columns?: readonly string[] | undefined
  delimiter?: string | undefined
}

const formOf = (name: string): Form =>
  /\.csv$/i.test(name) ? 'csv' : /\.(jsonl|ndjson)$/i.test(name) ? 'lines' : 'json'

const invalid = (message: string, hint?: string) =>
  new AgentError(message, { code: 'invalid_request', ...(hint && { hint }) })

/**
 * The records of a list, one after the other; other work gets its turns. `form` is that of the file where its name does
 * not say it. Throws an AgentError that names the file.
 */
export async function* recordsIn(given: Given, context: Context, form?: Form): AsyncGenerator<Json, void> {
  const { items, file = '', at, delimiter } = given
  if (items) {
    for (const item of items) {
      await endTurn()
      yield item
    }
    return
  }
  const found = await context.read(file)
  const of = form ?? formOf(file)
  try {
    const texts = () => textsIn(found.stream(), context.signal)
    const records =
      of === 'json'
        ? listIn(await wholeOf(found), at)
        : of === 'csv'
          ? recordsOfCsv(rowsOf(texts(), delimiter))
          : valuesOfLines(texts())
    for await (const record of records) {
      await endTurn()
      yield record
    }
  } catch (error) {
    if (!(error instanceof AgentError) || error.code !== 'invalid_request') throw error
    throw invalid(`[${context.callName}] ${file}: ${error.message}`, error.hint)
  }
}

async function* textsIn(stream: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const decode = (bytes?: Uint8Array) => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch {
      throw invalid('is not UTF-8 text')
    }
  }
  for await (const chunk of chunksIn(stream, signal)) yield decode(chunk)
  signal.throwIfAborted()
  yield decode()
}

async function* valuesOfLines(texts: AsyncIterable<string>): AsyncGenerator<Json, void> {
  let rest = ''
  let line = 0
  const parse = (text: string) => {
    line++
    return text.trim() === '' ? [] : [parsed(text, `line ${line} is not JSON`)]
  }
  for await (const text of texts) {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    if (rest.length > LONGEST_LINE) throw invalid(`line ${line + lines.length + 1} has more than 1 MiB`)
    for (const each of lines) yield* parse(each)
  }
  yield* parse(rest)
}

async function wholeOf(file: Awaited<ReturnType<Context['read']>>): Promise<Json> {
  if (file.size <= JSON_BYTES) return parsed((await file.text()).replace(/^\uFEFF/, ''), 'is not JSON')
  const hint = 'have it as lines of JSON (.jsonl) or as CSV, which are read piece by piece'
  throw invalid(`has ${file.size} bytes, and JSON is read as a whole, up to 64 MiB`, hint)
}

function parsed(text: string, why: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    throw invalid(why)
  }
}

function listIn(value: Json, at: string | undefined): Json[] {
  const found = at === undefined ? value : fieldAt(value, at)
  if (Array.isArray(found)) return found
  if (at !== undefined) throw invalid(`has no list at ${at}`)
  const lists = isObject(value) ? Object.keys(value).filter(key => Array.isArray((value as JsonObject)[key])) : []
  throw invalid('is no list', `write with \`at\` which of its fields is the list${lists[0] ? `: at: ${lists[0]}` : ''}`)
}

/** The field at a path such as `owner.email`; undefined when there is none. */
export function fieldAt(value: Json | undefined, path: string): Json | undefined {
  return path
    .split('.')
    .reduce<Json | undefined>(
      (above, key) => (isObject(above) && Object.hasOwn(above, key) ? (above as JsonObject)[key] : undefined),
      value,
    )
}

/** Writes a list in the form that the name of the file says, or in `form`. */
export function writeRecords(
  name: string,
  records: AsyncIterable<Json>,
  context: Context,
  written: Written = {},
  form: Form = formOf(name),
): Promise<FileRecord> {
  const texts = form === 'csv' ? csvTexts(records, written, context) : jsonTexts(records, form)
  return context.write(name, streamOf(inPieces(texts)))
}

async function* jsonTexts(records: AsyncIterable<Json>, form: Form): AsyncGenerator<string, void> {
  if (form === 'lines') {
    for await (const record of records) yield `${JSON.stringify(record)}\n`
    return
  }
  let isFirst = true
  for await (const record of records) {
    yield `${isFirst ? '[\n' : ',\n'}${JSON.stringify(record)}`
    isFirst = false
  }
  yield isFirst ? '[]\n' : '\n]\n'
}

async function* csvTexts(
  records: AsyncIterable<Json>,
  { columns, delimiter }: Written,
  { callName }: Pick<Context, 'callName'>,
): AsyncGenerator<string, void> {
  let names = columns
  let count = 0
  const refuse = (why: string, hint?: string) => invalid(`[${callName}] item ${count} ${why}`, hint)
  if (names) yield csvLine(names, delimiter)
  for await (const record of records) {
    if (!isObject(record)) throw refuse('is no object, so it has no columns')
    const keys = Object.keys(record)
    if (!names) {
      if (keys.length === 0) throw refuse('has no fields, so there are no columns', 'list `columns`')
      names = keys
      yield csvLine(names, delimiter)
    }
    const other = columns ? undefined : keys.find(key => !names!.includes(key))
    if (other !== undefined) throw refuse(`has the field ${other}, which the first one lacks`, 'list `columns`')
    const own = record as JsonObject
    yield csvLine(
      names.map(name => (columns ? fieldAt(own, name) : own[name])),
      delimiter,
    )
    count++
  }
}

async function* inPieces(texts: AsyncIterable<string>): AsyncGenerator<string, void> {
  let piece = ''
  for await (const text of texts) {
    piece += text
    if (piece.length < PIECE) continue
    yield piece
    piece = ''
  }
  yield piece
}

/** Writes a text that comes in pieces. */
export const writeTexts = (name: string, texts: AsyncIterable<string>, context: Context): Promise<FileRecord> =>
  context.write(name, streamOf(inPieces(texts)))

/** The result of an action that writes a list: the first of its items as `data`, and how many there are. */
export async function writeList(
  name: string,
  records: AsyncIterable<Json>,
  context: Context,
  written: Written = {},
  form?: Form,
): Promise<{ items: Json[]; total: number; truncated: boolean }> {
  const items: Json[] = []
  let [total, bytes] = [0, 0]
  async function* counted() {
    for await (const record of records) {
      if (bytes <= DATA_BYTES) bytes += Buffer.byteLength(JSON.stringify(record))
      if (bytes <= DATA_BYTES) items.push(record)
      total++
      yield record
    }
  }
  await writeRecords(name, counted(), context, written, form)
  return { items, total, truncated: items.length < total }
}
