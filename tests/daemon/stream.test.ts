// Following a run over connections that break: every state and every log line arrives, none twice.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'

const PARTS = 4
const LINES_EACH = 30
const LINES = PARTS * LINES_EACH
/** Says each part once the file with its number is there. */
const TALK = `for part in $(seq ${PARTS}); do until [ -e $part ]; do sleep 0.02; done; for n in $(seq ${LINES_EACH}); do echo "part $part line $n"; sleep 0.005; done; done`
const TEAM = {
  'team.yml': `name: "@local/talks"
version: 1.0.0
phases:
  - { name: talk, agent: exec, commands: [{ name: c, run: '${TALK}' }] }
  - { name: below, type: team, depends_on: [talk], team: ./below }
`,
  'below/team.yml': `name: "@local/below"
version: 1.0.0
phases: [{ name: says, agent: exec, commands: [{ name: c, run: "echo below" }] }]
`,
}

interface Line {
  seq: number
  text: string
}

/** One connection: reads events until its reader has enough, or the last one. */
async function* read(daemon: RunningDaemon, runId: string, lastId: number) {
  const controller = new AbortController()
  const headers = lastId > 0 ? { 'last-event-id': String(lastId) } : {}
  const reply = await fetch(`${daemon.url}/v1/runs/stream?run_id=${runId}`, { headers, signal: controller.signal })
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of reply.body!) {
      const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
      rest = blocks.pop()!
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
        if (!field('event')) continue
        yield { id: Number(field('id')), event: field('event')!, data: JSON.parse(field('data')!) }
      }
    }
  } finally {
    controller.abort()
  }
}

const NUMBERS = Array.from({ length: LINES }, (_, n) => n + 1)

test('nothing is lost or doubled over a reconnect', async () => {
  const daemon = await spawnDaemon()
  const path = files(TEAM)
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  const lines: Line[] = []
  let lastId = 0
  let ended = false
  const states = new Map<string, string>()
  const begin = (part: number) => writeFileSync(join(path, String(part)), '')
  // Each connection is cut when a part has begun; the next part begins meanwhile. The last one hears the end.
  for (let part = 1; part <= PARTS + 1; part++) {
    if (part > 1) begin(part)
    for await (const { id, event, data } of read(daemon, run_id, lastId)) {
      // Who was never connected hears what is said from now on.
      if (lastId === 0) begin(part)
      expect(id).toBeGreaterThan(lastId)
      lastId = id
      if (event === 'phase') states.set(`${data.run_id} ${data.name}`, data.state)
      if (event === 'run') states.set(data.run_id, data.state)
      if (event === 'end') ended = true
      if (event !== 'log' || data.run_id !== run_id) continue
      // Lines come again after a reconnect; their numbers tell.
      lines.push(...(data.lines as Line[]).filter(({ seq }) => seq > (lines.at(-1)?.seq ?? 0)))
      if (lines.at(-1)!.text.startsWith(`part ${part} `)) break
    }
    expect(ended).toBe(part > PARTS)
  }
  expect(lines.map(({ seq }) => seq)).toEqual(NUMBERS)
  const said = (_: unknown, n: number) => `part ${Math.floor(n / LINES_EACH) + 1} line ${(n % LINES_EACH) + 1}`
  expect(lines.map(({ text }) => text)).toEqual(Array.from({ length: LINES }, said))

  const { runs } = await daemon.call('/v1/runs/tree', { run_id })
  for (const run of runs) {
    expect(states.get(run.run_id)).toBe('completed')
    const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: run.run_id })
    if (run.run_id === run_id) for (const { name, state } of phases) expect(states.get(`${run_id} ${name}`)).toBe(state)
  }
}, 30_000)

test('a connection that breaks before it has told what it missed takes nothing from the next one', async () => {
  const daemon = await spawnDaemon()
  const path = files(TEAM)
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  const numbers = new Set<number>()
  let lastId = 0
  /** Reads a connection until `enough` of an event is true, or to its end. */
  const listen = async (enough: (texts: readonly string[]) => boolean, onFirst = () => {}) => {
    for await (const { id, event, data } of read(daemon, run_id, lastId)) {
      onFirst()
      expect(id).toBeGreaterThan(lastId)
      lastId = id
      const lines: Line[] = event === 'log' && data.run_id === run_id ? data.lines : []
      for (const { seq } of lines) numbers.add(seq)
      if (enough(lines.map(({ text }) => text))) return
    }
  }
  const begin = (part: number) => writeFileSync(join(path, String(part)), '')
  await listen(
    texts => texts.some(text => text.startsWith('part 1 ')),
    () => begin(1),
  )
  begin(2)
  const said = (): Promise<{ lines: { text: string; at: number }[] }> => daemon.call('/v1/runs/logs', { run_id })
  // Lines that are younger than 5 s are told again whatever the reader has heard.
  const isOld = async () => {
    const last = (await said()).lines.at(-1)
    return last?.text === `part 2 line ${LINES_EACH}` && Date.now() - last.at > 6_000
  }
  await until(isOld, 'the second part is over for some time')
  // The first event is a state.
  await listen(() => true)
  for (const part of [3, 4]) begin(part)
  await listen(() => false)
  expect([...numbers].sort((a, b) => a - b)).toEqual(NUMBERS)
}, 60_000)

test('connections that break among many states take nothing from the next one', async () => {
  const daemon = await spawnDaemon()
  const MANY = 90
  const waits = Array.from(
    { length: MANY },
    (_, n) =>
      `  - { name: w${n}, agent: exec, depends_on: [talk], when: "false", commands: [{ name: c, run: "true" }] }\n`,
  )
  const path = files({ ...TEAM, 'team.yml': TEAM['team.yml'] + waits.join('') })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  const numbers = new Set<number>()
  let lastId = 0
  const begin = (part: number) => writeFileSync(join(path, String(part)), '')
  const listen = async (enough: (event: string, texts: readonly string[]) => boolean) => {
    for await (const { id, event, data } of read(daemon, run_id, lastId)) {
      if (lastId === 0) begin(1)
      expect(id).toBeGreaterThan(lastId)
      lastId = id
      const lines: Line[] = event === 'log' && data.run_id === run_id ? data.lines : []
      for (const { seq } of lines) numbers.add(seq)
      if (
        enough(
          event,
          lines.map(({ text }) => text),
        )
      )
        return
    }
  }
  await listen((_, texts) => texts.some(text => text.startsWith('part 1 ')))
  begin(2)
  const isSaid = async () =>
    (await daemon.call('/v1/runs/logs', { run_id })).lines.at(-1)?.text === `part 2 line ${LINES_EACH}`
  await until(isSaid, 'the second part is over')
  // Together they hear of more states than the milliseconds within which lines are told again.
  for (let connections = 0; connections < 12_000 / MANY; connections++) {
    let heard = 0
    await listen(event => event === 'phase' && ++heard === MANY)
  }
  for (const part of [3, 4]) begin(part)
  await listen(() => false)
  expect([...numbers].sort((a, b) => a - b)).toEqual(NUMBERS)
}, 60_000)
