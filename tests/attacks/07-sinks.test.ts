// The way to a terminal, to JSON and to the log: whatever text comes from outside, nothing in it is a command there,
// nothing begins a line, and nothing is unseen. Only lib/text/printable.ts makes what lib/text/terminal.ts writes. The
// way into the database, logs and messages: no secret passes, and what nobody has masked does not compile there.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import type { RunTracingOptions } from '../../lib/daemon/runs/run-tracing.ts'
import { runFolder } from '../../lib/files/run-id.ts'
import { RunIds } from '../../lib/files/run-ids.ts'
import { createLog } from '../../lib/log/log.ts'
import type { Telemetry } from '../../lib/log/telemetry.ts'
import type { Span } from '../../lib/log/trace.ts'
import type { RunLogs } from '../../lib/run/attempt/logs.ts'
import { runDetail, type Store, why } from '../../lib/run/engine.ts'
import { maskedText } from '../../lib/secrets/masked.ts'
import { clip, createPaint, joined, line, lines, pad, wrap } from '../../lib/text/printable.ts'
import { print } from '../../lib/text/terminal.ts'
import { seenJson } from '../../lib/text/unseen.ts'
import { testEngine } from '../support/engine.ts'
import { hostileJson, hostileTexts } from '../support/hostile.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { obeyed, unseen } from '../support/terminal-bytes.ts'

const random = randomFrom(seedOf('sinks'))
/** The columns in which the run below has left something that was masked. */
const REACHED = [
  ...['attempts.error', 'deliveries.error', 'deliveries.payload', 'items.key', 'items.value', 'phases.data'],
  ...['phases.error', 'phases.text', 'receipts.copies', 'receipts.external_id', 'receipts.external_url'],
  ...['receipts.result', 'reviews.comment', 'reviews.prompt', 'runs.error', 'runs.inputs', 'runs.run_name'],
]

/** The places that say of a text that it is masked, although no redactor has just made it. */
const CLAIMS: Readonly<Record<string, readonly [times: number, why: string]>> = {
  'lib/run/attempt/ledger.ts': [1, 'the result of a receipt, which the ledger recorded masked'],
  'lib/run/attempt/later-lookups.ts': [1, 'the copies of a receipt, which the ledger recorded masked'],
  'lib/run/attempt/deliver.ts': [1, 'the name of an event, which is one of a list of ours'],
  'lib/run/steps/kinds/map.ts': [1, 'a result that consists of what sub-runs have recorded'],
  'lib/run/steps/kinds/team.ts': [3, 'the recorded outputs of a sub-run, and the name of its team'],
  'lib/run/steps/tree/review.ts': [1, 'the recorded prompt of a review'],
  'lib/secrets/masked.ts': [4, 'the functions that join, print and read masked texts'],
  'lib/secrets/redact.ts': [2, 'the redactor itself'],
}

const texts = hostileTexts(random, 500)

test('text from outside is one line on a terminal, without commands and without what nobody sees', () => {
  const paint = createPaint({}, true)
  for (const text of texts) {
    const shown = line`run ${text} ended${paint.red(text)}`
    expect([text, obeyed(shown.text), shown.text.includes('\n')]).toEqual([text, [], false])
    for (const each of [...lines(text), pad(text, 9), joined([text, text], '  '), ...wrap(line`${text}`, 20)]) {
      expect([text, obeyed(each.text), each.text.includes('\n')]).toEqual([text, [], false])
    }
    expect([text, wrap(line`${text}`, 20).every(({ width }) => width <= 20)]).toEqual([text, true])
    expect([text, clip(line`${text}`, 20).width > 20]).toEqual([text, false])
  }
})

test('colours of others are not colours', () => {
  expect(line`${'\x1b[31mred\x9b1m'}`.text).toBe('·[31mred·1m')
  // What was printable already keeps its colours, and loses them where it becomes a text.
  const red = createPaint({}, true).red('a')
  expect(line`${red}`.text).toBe('\x1b[31ma\x1b[39m')
  expect(`${red}`).toBe('a')
})

test('what nobody sees is shown by name, and emoji stay', () => {
  expect(line`${'a\u202eb\u200bc\u{e0041}d\u3164'}`.text).toBe('a<U+202E>b<U+200B>c<U+E0041>d<U+3164>')
  expect(line`${'⚠️ 👩‍🚀 漢字 é'}`.text).toBe('⚠ 👩🚀 漢字 é')
})

test('JSON that is printed has every unseen character escaped, and the same value', () => {
  for (let count = 0; count < 1_000; count++) {
    const value = hostileJson(random)
    for (const text of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
      expect(JSON.parse(seenJson(text))).toEqual(JSON.parse(text))
      expect([text, unseen(seenJson(text))]).toEqual([text, []])
    }
  }
})

test('a line of the log is one line in both formats, and nothing in it is obeyed', () => {
  for (const format of ['human', 'json'] as const) {
    let said = ''
    const log = createLog({ format, write: text => (said = text) })
    for (const text of texts) {
      log.info('event', { text, [text]: { below: text } })
      expect([format, text, obeyed(said), said.includes('\n')]).toEqual([format, text, [], false])
    }
  }
})

test('no other file writes to a terminal', async () => {
  const WRITERS = ['lib/text/terminal.ts', 'lib/log/log.ts']
  const WRITES =
    /std(out|err)\s*\.\s*write|console\s*\.\s*(log|info|debug|error|warn|table|dir)\s*\(|Bun\.(stdout|stderr)|\b(stream|stdout|stderr)\.(write|end)\(|\/dev\/tty/
  // A file of a run, which is written as it is where no terminal reads it.
  const BYTES = ['lib/daemon/cli/runs/files.ts']
  const found: string[] = []
  for (const glob of ['lib/{daemon,hub,team,run,settings,wire,http,agent}/**/*.ts', 'lib/*.ts', 'db/**/*.ts', '*.ts']) {
    for await (const file of new Bun.Glob(glob).scan(`${import.meta.dir}/../..`)) {
      if (WRITERS.includes(file) || BYTES.includes(file)) continue
      const text = await Bun.file(`${import.meta.dir}/../../${file}`).text()
      for (const [at, row] of text.split('\n').entries()) {
        if (WRITES.test(row) && !/^\s*(\/\/|\*)/.test(row)) found.push(`${file}:${at + 1} ${row.trim()}`)
      }
    }
  }
  expect(found).toEqual([])
})

test('a text that was not cleaned does not compile', () => {
  // @ts-expect-error: a string is not printable
  const wrong = () => print('text')
  // @ts-expect-error: neither is something that looks like it
  const other = () => print({ text: 'text', width: 4, isEmpty: false })
  expect([wrong, other]).toHaveLength(2)
})

describe('what is recorded', () => {
  const SECRET = 'a-value-nobody-sees'

  test('has no secret in any column of any table, in any log and in anything that is shown, whichever way it came', async () => {
    let lookups = 0
    const vendor = agent({
      type: 'connector',
      version: '1.0.0',
      description: 'Says what it was given, in each way in which an agent can say something.',
      settings: Type.Object({}),
      actions: {
        create: {
          direction: 'target',
          effect: 'once',
          entry: Type.Object({ name: Type.String(), value: Type.String() }),
          async run({ value }, context) {
            context.log(`sends ${value}`, { value })
            using _ = context.waiting(`for ${value}`)
            throw new AgentError(`lost ${value}`, { retryable: true, sent: 'unknown' })
          },
          find: async ({ value }) => {
            lookups++
            const external = { id: value, url: `http://tickets/${value}` }
            return [
              { text: value, data: { value }, external },
              { text: value, external: { id: `${value} again`, url: `http://copies/${value}` } },
            ]
          },
        },
        fail: {
          direction: 'target',
          effect: 'idempotent',
          entry: Type.Object({ name: Type.String(), value: Type.String() }),
          async run({ value }) {
            throw new AgentError(`refused ${value}`, { hint: `without ${value}`, retryable: true })
          },
        },
      },
      notify: {
        effect: 'idempotent',
        entry: Type.Object({ message: Type.String() }),
        async run({ message }, { event }) {
          throw new AgentError(`not delivered: ${message} ${event!.message}`)
        },
      },
    })
    const value = '{{ inputs.token }}'
    const each = { name: '@local/each', version: '1.0.0', inputs: [{ name: 'item', type: 'string' }] }
    const files = {
      'team.yml': JSON.stringify({
        name: '@local/all',
        version: '1.0.0',
        inputs: [{ name: 'token', type: 'string', required: true, secret: true }],
        outputs: [{ name: 'said', type: 'string', value }],
        phases: [
          { name: 'write', agent: 'vendor', action: 'create', target_entries: [{ name: 'one', value }] },
          {
            ...{ name: 'fail', agent: 'vendor', action: 'fail', target_entries: [{ name: 'one', value }] },
            ...{ depends_on: ['write'], retry: { attempts: 2, backoff: '1ms' }, on_failure: 'escalate' },
          },
          { name: 'ask', type: 'gate', depends_on: ['write'], review: { prompt: `is ${value} right?` } },
          { name: 'each', type: 'map', depends_on: ['write'], items: [value], key: value, team: './each', inputs: {} },
          { name: 'tell', agent: 'vendor', notify: ['on_complete', 'on_fail'], message: `ended with ${value}` },
        ],
      }),
      'each/team.yml': JSON.stringify({
        ...each,
        phases: [{ name: 'e', agent: 'exec', commands: [{ name: 'c', run: 'true' }] }],
      }),
    }
    await using t = await testEngine({ agents: { vendor } })
    const { run_id } = await t.start(files, { token: SECRET })
    const reviews = () => t.engine.store.reviews.list({ state: 'pending', limit: 9, offset: 0 }).rows
    while (reviews().length < 2) await Bun.sleep(5)
    for (const { id, kind } of reviews()) {
      const decision = kind === 'gate' ? 'approve' : 'fail'
      await t.engine.decide(id, { decision, by: 'me', comment: `because of ${SECRET}` })
    }
    await t.engine.ended(run_id)
    await t.engine.untilQuiet()
    expect(lookups).toBeGreaterThan(0)

    const masked: string[] = []
    const names = t.db.query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
    for (const { name } of names) {
      for (const row of t.db.query<Record<string, unknown>, []>(`SELECT * FROM "${name}"`).all()) {
        for (const [column, held] of Object.entries(row)) {
          expect([name, column, String(held).includes(SECRET)]).toEqual([name, column, false])
          if (String(held).includes('***')) masked.push(`${name}.${column}`)
        }
      }
    }
    // Each of these sinks was reached, so that this test does not pass because nothing was recorded.
    expect([...new Set(masked)].sort()).toEqual(REACHED)
    const log = readFileSync(join(runFolder(t.home, run_id), 'log.jsonl'), 'utf8')
    expect([log.includes('sends ***'), log.includes(SECRET)]).toEqual([true, false])
    const shown = JSON.stringify([
      runDetail(t.engine.store, run_id),
      why(t.engine.store, run_id, id => t.engine.bundle(id)),
    ])
    expect([shown.includes('***'), shown.includes(SECRET)]).toEqual([true, false])
  })
})

test('what nobody has masked does not compile where it is recorded, logged or sent', () => {
  const text: string = 'text'
  const wrong = (
    { phases, receipts, deliveries }: Store,
    logs: RunLogs,
    { add }: RunTracingOptions['tracer'],
    span: Span,
    { exportLines }: Telemetry,
  ) => {
    // @ts-expect-error: the error of a phase
    phases.setError('run', 0, { code: 'failed', message: text })
    // @ts-expect-error: its result
    phases.end('run', 0, 1, 'completed', 0, { text })
    // @ts-expect-error: what else another system has
    receipts.setCopies({ runId: 'run', position: 0, entry: 'one' }, text)
    // @ts-expect-error: why a message was not delivered
    deliveries.set('run', 0, 'failed', text)
    // @ts-expect-error: a line of a log
    logs.append(new RunIds().next(), { phase: null, at: 0, stream: 'log', text })
    // @ts-expect-error: the name of a span
    add({ ...span, name: text, attributes: {} })
    // @ts-expect-error: lines of the log
    exportLines(line => line)
    // @ts-expect-error: a text between our own words
    return maskedText`ours ${text}`
  }
  expect(wrong).toBeFunction()
})

/** A call of `recordedText`, a cast, and JSON that is read as if it were masked. */
const CLAIM =
  /\brecordedText\(.|\bas (Masked|Mark\b)|<(?:[^()]*[ <|])?Masked\b[^()]*>\(|: [^=()]*\bMasked\w*\b[^=()]* = JSON\.parse/g
const claimsIn = (text: string): number => {
  const code = text.split('\n').map(row => row.replace(/^\s*(\/\/|\/?\*).*/, '').replace('function recordedText(', ''))
  return code.reduce((count, row) => count + [...row.matchAll(CLAIM)].length, 0)
}

test('each way to say that a text is masked is seen', () => {
  const ways = [
    'const text = recordedText(row.text)',
    'return text as MaskedText',
    'return { text } as Masked<Result>',
    'const result = parse<Masked<Result>>(row.result)',
    'const given = parse<{ outputs: Masked<JsonObject>; files: FileRecord[] }>(row.handed)',
    "const known: Masked<Copy>[] = JSON.parse(row.copies ?? '[]')",
  ]
  expect(ways.map(claimsIn)).toEqual(ways.map(() => 1))
  expect(claimsIn('mask<T>(value: T): Masked<T>\n// as MaskedText\nconst found = new Map<string, number>()')).toBe(0)
})

test('only the listed places say of a text that it is masked', async () => {
  const root = join(import.meta.dir, '../..')
  const found: Record<string, number> = {}
  for (const file of new Bun.Glob('{agents,bench,db,deploy,lib}/**/*.{ts,tsx}').scanSync(root)) {
    const claims = claimsIn(await Bun.file(join(root, file)).text())
    if (claims > 0) found[file] = claims
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(CLAIMS).map(([file, [times]]) => [file, times])))
})
