// Following a run over connections that break: every state and every log line arrives, none twice.

import { expect, test } from 'bun:test'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'

const LINES = 120
const TEAM = {
  'team.yml': `name: "@local/talks"
version: 1.0.0
phases:
  - { name: talk, agent: exec, commands: [{ name: c, run: 'for n in $(seq ${LINES}); do echo "line $n"; sleep 0.01; done' }] }
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

/** One connection: reads events until it has seen `most`, or the last one. */
async function* read(daemon: RunningDaemon, runId: string, lastId: number, most: number) {
  const controller = new AbortController()
  const headers = lastId > 0 ? { 'last-event-id': String(lastId) } : {}
  const reply = await fetch(`${daemon.url}/v1/runs/stream?run_id=${runId}`, { headers, signal: controller.signal })
  const decoder = new TextDecoder()
  let rest = ''
  let seen = 0
  try {
    for await (const chunk of reply.body!) {
      const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
      rest = blocks.pop()!
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
        if (!field('event')) continue
        yield { id: Number(field('id')), event: field('event')!, data: JSON.parse(field('data')!) }
        if (++seen === most) return
      }
    }
  } finally {
    controller.abort()
  }
}

test('nothing is lost or doubled over a reconnect', async () => {
  const daemon = await spawnDaemon()
  const { run_id } = await daemon.call('/v1/runs/start', { path: files(TEAM) })
  const lines: Line[] = []
  let lastId = 0
  let ended = false
  let connections = 0
  const states = new Map<string, string>()
  while (!ended) {
    connections++
    for await (const { id, event, data } of read(daemon, run_id, lastId, 25)) {
      expect(id).toBeGreaterThan(lastId)
      lastId = id
      if (event === 'phase') states.set(`${data.run_id} ${data.name}`, data.state)
      if (event === 'run') states.set(data.run_id, data.state)
      if (event === 'end') ended = true
      if (event !== 'log' || data.run_id !== run_id) continue
      // Lines come again after a reconnect; their numbers tell.
      lines.push(...(data.lines as Line[]).filter(({ seq }) => seq > (lines.at(-1)?.seq ?? 0)))
    }
    await Bun.sleep(30)
  }
  expect(connections).toBeGreaterThan(2)
  expect(lines.map(({ seq }) => seq)).toEqual(Array.from({ length: LINES }, (_, n) => n + 1))
  expect(lines.map(({ text }) => text)).toEqual(Array.from({ length: LINES }, (_, n) => `line ${n + 1}`))

  const { runs } = await daemon.call('/v1/runs/tree', { run_id })
  for (const run of runs) {
    expect(states.get(run.run_id)).toBe('completed')
    const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: run.run_id })
    if (run.run_id === run_id) for (const { name, state } of phases) expect(states.get(`${run_id} ${name}`)).toBe(state)
  }
}, 30_000)
