// SQLite, in a process of its own: its calls block the thread that makes them, and a process can be ended.
//
// The process reads its job from stdin and answers in lines of JSON (sqlite-process.ts). It waits while its output is not
// read, so memory is limited whatever the number of rows.

import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import type { Json } from '../../json.ts'
import { ownProgram } from '../../program/install-root.ts'
import { chunksIn, textIn } from '../../stream.ts'
import type { Batch, Database, Receipt } from './database.ts'
import type { Access } from './database-access.ts'
import type { Column } from './lists.ts'
import { type Statement, spotOf } from './statement.ts'

type File = Extract<Access, { provider: 'sqlite' }>

export type Job = { file: string } & (
  | { about: true }
  | { read: string; values: Json[]; most: number }
  | { write: string; values: Json[]; lists: Column[]; receipt: Receipt | null }
  | { find: Receipt }
)

/** A line of the process: rows, the result of the job, or why it failed. */
export type Line =
  | { columns: string[] }
  | Json[]
  | { result: Json }
  | { failed: { message: string; code: string; offset: number } }

const PROGRAM = 'lib/vendors/database/sqlite-process.ts'
/** The code with which the process refuses a list for a column that has no JSON. */
export const NO_JSON = 'CADRE_NO_JSON'
/** Number of bytes of the process's stderr that an error quotes. */
const QUOTED = 500
/** What is kept of its stderr, in bytes. */
const SAID_MOST = 64 * 1024

export function openSqlite(context: AgentContext<unknown>, access: File): Database {
  const ask = async (job: Job, statement?: Statement): Promise<Json> => {
    for await (const lines of answersOf(context, access, job, statement)) {
      for (const line of lines) if ('result' in line) return line.result
    }
    throw ended(context, access, job, '')
  }
  return {
    async about() {
      return { version: `SQLite ${await ask({ file: access.file, about: true })}`, user: null, risks: [] }
    },
    async *read(statement, most) {
      const job = { file: access.file, read: statement.text, values: statement.values, most }
      let columns: string[] = []
      for await (const lines of answersOf(context, access, job, statement)) {
        for (const line of lines) if ('columns' in line) columns = line.columns
        yield { columns, rows: lines.filter(line => Array.isArray(line)) }
      }
    },
    async write(statement, receipt) {
      const { text, values } = statement
      const lists = statement.lists.map(({ column }) => column!)
      const job = { file: access.file, write: text, values, lists, receipt }
      const written = (await ask(job, statement)) as { affected: number | null; returned: Json; before: boolean }
      return { ...written, returned: written.returned as Batch | null }
    },
    async find(receipt) {
      const { found, affected } = (await ask({ file: access.file, find: receipt })) as {
        found: boolean
        affected: number | null
      }
      return found ? affected : undefined
    },
    async [Symbol.asyncDispose]() {},
  }
}

/** The answers of the process, as many at a time as arrive together. */
async function* answersOf(
  context: AgentContext<unknown>,
  access: File,
  job: Job,
  statement?: Statement,
): AsyncGenerator<Exclude<Line, { failed: unknown }>[], void> {
  context.signal.throwIfAborted()
  const options = { cwd: context.stateDir, env: { ...context.env }, input: JSON.stringify(job) }
  const group = context.start(ownProgram(PROGRAM), options)
  const stop = () => group.stop()
  context.signal.addEventListener('abort', stop, { once: true })
  const stderr = textIn(group.child.stderr, { most: SAID_MOST })
  try {
    for await (const texts of linesIn(group.child.stdout)) {
      yield texts.map(text => {
        const line = JSON.parse(text) as Line
        if ('failed' in line) throw explain(context, access, line.failed, statement)
        return line
      })
    }
    const code = await group.child.exited
    if (code !== 0 || context.signal.aborted) throw ended(context, access, job, await stderr)
  } finally {
    context.signal.removeEventListener('abort', stop)
    group.close()
  }
}

async function* linesIn(stream: ReadableStream<Uint8Array>): AsyncGenerator<string[], void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunksIn(stream)) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop()!
    yield parts
  }
}

function ended({ callName, signal }: AgentContext<unknown>, { label }: File, job: Job, stderr: string): AgentError {
  const sent = 'write' in job ? 'unknown' : 'no'
  if (signal.aborted) return new AgentError(`[${callName}] ${label}: stopped`, { code: 'aborted', sent })
  const said = stderr.trim().slice(-QUOTED)
  return new AgentError(`[${callName}] ${label}: the process ended early${said && `: ${said}`}`, {
    code: 'crashed',
    sent,
  })
}

const CODES: readonly [codes: RegExp, code: string, hint?: string][] = [
  [/^SQLITE_READONLY/, 'read_only', 'a query must only read; use the action `execute` to write'],
  [/^SQLITE_(BUSY|LOCKED)/, 'conflict', 'another program holds the database; give the phase `retry`'],
  [/^SQLITE_(CANTOPEN|NOTADB)/, 'not_found', 'check the path of the database; it must exist'],
]

function explain(
  { callName, agent }: AgentContext<unknown>,
  { label }: File,
  { message, code: said, offset }: { message: string; code: string; offset: number },
  statement: Statement | undefined,
): AgentError {
  // The offset is the number of the list.
  if (said === NO_JSON) return statement!.lists[offset]!.refused()
  const [, code = 'rejected', hint] = CODES.find(([codes]) => codes.test(said)) ?? []
  const spot = statement && offset >= 0 ? `, ${spotOf(statement, statement.origin(offset))}` : ''
  return new AgentError(`[${callName}] ${label}: ${message} (${said || 'SQLITE_ERROR'}${spot})`, {
    code,
    sent: 'no',
    retryable: code === 'conflict',
    ...(hint && { hint: code === 'not_found' ? `agents.${agent}.database: ${hint}` : hint }),
  })
}
