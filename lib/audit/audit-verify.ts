// Reads an audit export of a home or hub, and says in words whether its chains are whole. `audit verify` prints this.

import { CadreError } from '../error.ts'
import { ChainCheck, type Checked, type Expected } from './audit-chain.ts'

/** No line of an export is longer. Another file may be one line of any length. */
const LONGEST_LINE = 1_000_000

/** The values of lines of JSON. Throws `invalid_request` for anything else. */
export async function* jsonLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const part of bytes) {
    const lines = (rest + decoder.decode(part, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) if (line !== '') yield parsed(line)
    if (rest.length > LONGEST_LINE) throw notAnExport()
    // A pipe that always has more would block the event loop.
    await new Promise(setImmediate)
  }
  if (rest !== '') yield parsed(rest)
}

/** Follows an export, and returns what to print and whether all of it is whole. */
export async function verifyAudit(
  lines: AsyncIterable<unknown>,
  expected: Expected,
): Promise<{ whole: boolean; report: string[]; chains: Checked[] }> {
  const check = new ChainCheck(expected)
  try {
    for await (const line of lines) check.take(line)
  } catch (error) {
    throw error instanceof SyntaxError
      ? new CadreError('invalid_request', `${error.message}: audit export makes one`)
      : error
  }
  const { chains, found, whole } = check.result()
  const report = chains.map(inWords)
  if (chains.length === 0) report.push('no entry')
  else if (whole && expected.from === undefined) report.push(UNSEEN)
  if (!found) report.push(`no chain has the hash ${expected.from}: it was made anew, or the hash is of another log`)
  return { whole, report, chains }
}

const UNSEEN =
  'not shown: entries that somebody with the database removed from the end, and a log that was written anew; keep the heads elsewhere, and give one of them with --from'

function inWords({ chain, begin, head, unsealed, broken }: Checked): string {
  const removed =
    begin.removed_until === undefined ? '' : `, removed until ${new Date(begin.removed_until).toISOString()}`
  const before = begin.seq === 0 ? '' : ` (after entry ${begin.seq}${removed})`
  const waiting = unsealed === 0 ? '' : `; ${unsealed} not sealed yet`
  if (broken) return `${chain}: BROKEN at entry ${broken.seq}, line ${broken.line}: ${broken.why}`
  return `${chain}: whole, entries ${begin.seq + 1} to ${head.seq}${before}${waiting}; head ${head.hash}`
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw notAnExport()
  }
}

const notAnExport = () => new CadreError('invalid_request', 'the file is not lines of JSON: audit export makes one')
