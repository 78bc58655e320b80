// GET /metrics of a daemon: how its runs and phases ended, what became of writes, and which labels it makes of names.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'

const vendor = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname } = new URL(request.url)
    // The reply of this one never comes, so nobody knows whether it was written.
    if (pathname === '/lost') vendor.stop(true)
    return new Response('x', { status: pathname === '/refused' ? 400 : 200 })
  },
})
afterAll(() => vendor.stop(true))

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon({ env: { CADRE_METRICS_TEAMS: '1', CADRE_METRICS_SERIES: '2' } })
})

const team = (name: string, phases: string) =>
  files({ 'team.yml': `name: "@local/${name}"\nversion: 1.0.0\nphases:\n${phases}` })

async function run(path: string): Promise<string> {
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  return run_id
}

const post = (path: string) =>
  `  - { name: ${path}, agent: http, target_entries: [{ name: t, url: "${vendor.url}${path}", method: POST, body: x }] }\n`
const command = (name: string, run: string, more = '') =>
  `  - { name: ${name}, agent: exec, commands: [{ name: c, run: "${run}" }]${more} }\n`

/** The samples of a metric, by their labels. */
async function samples(name: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text()
  const lines = text.split('\n').flatMap(line => [...line.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/g)])
  return Object.fromEntries(
    lines.filter(line => line[1] === name).map(([, , labels = '', value]) => [labels, Number(value)]),
  )
}

test('runs are counted by result and team, phases and writes by agent, each once', async () => {
  const good = team('good', command('one', 'echo 1') + post('taken'))
  for (let count = 0; count < 2; count++) await daemon.ended(await run(good))
  const skipped = command('after', 'true', ', depends_on: [refused]')
  const bad = await run(team('bad', post('refused') + skipped))
  await daemon.ended(bad)
  await daemon.call('/v1/runs/resume', { run_id: bad })
  await daemon.ended(bad)
  await daemon.ended(await run(team('third', command('one', 'true'))))
  await daemon.ended(await run(team('fourth', command('one', 'false'))))

  const ended = (result: string, name: string) =>
    `cicd_pipeline_run_state="executing",cicd_pipeline_result="${result}",cicd_pipeline_name="${name}"`
  const durations = 'cicd_pipeline_run_duration_seconds'
  expect(await samples(`${durations}_count`)).toEqual({
    [ended('success', '@local/good')]: 2,
    // It ended again after the resume.
    [ended('failure', '@local/bad')]: 2,
    [ended('success', 'other')]: 1,
    [ended('failure', 'other')]: 1,
  })
  const seconds = (await samples(`${durations}_sum`))[ended('success', '@local/good')]!
  expect(seconds).toBeGreaterThan(0)
  expect(seconds).toBeLessThan(60)

  const phases = (agent: string, result: string) => `agent="${agent}",cicd_pipeline_task_run_result="${result}"`
  expect(await samples('cadre_phases_total')).toEqual({
    [phases('exec', 'success')]: 3,
    [phases('exec', 'failure')]: 1,
    [phases('exec', 'skip')]: 2,
    [phases('http', 'success')]: 2,
    [phases('http', 'failure')]: 2,
  })
  const written = await samples('cadre_outside_writes_total')
  expect(written['agent="http",effect="once",result="written"']).toBe(2)
  expect(written['agent="http",effect="once",result="failed"']).toBe(2)

  const asking = await run(team('lost', post('lost')))
  let reviews: { run_id: string }[] = []
  while (reviews.length === 0) {
    await Bun.sleep(50)
    ;({ reviews } = await daemon.call('/v1/reviews/list', {}))
  }
  expect(reviews[0]!.run_id).toBe(asking)
  expect((await samples('cadre_outside_writes_total'))['agent="http",effect="once",result="doubtful"']).toBe(1)
}, 60_000)

test('it tells of its process, and that it sends nothing to a hub', async () => {
  const [memory] = Object.values(await samples('process_resident_memory_bytes'))
  expect(memory).toBeGreaterThan(10_000_000)
  const [started] = Object.values(await samples('process_start_time_seconds'))
  expect(Math.abs(started! - Date.now() / 1_000)).toBeLessThan(120)
  const [cpu] = Object.values(await samples('process_cpu_seconds_total'))
  expect(cpu).toBeGreaterThan(0)
  expect(await samples('cadre_outbox_files')).toEqual({ '': 0 })
  expect(await samples('cadre_hub_connected')).toEqual({})
})

test('no label has the id of a run or what a team wrote', async () => {
  const text = await (await fetch(`${daemon.url}/metrics`)).text()
  const { runs } = await daemon.call('/v1/runs/list', {})
  for (const { run_id } of runs) expect(text).not.toContain(run_id)
  expect(text).not.toContain(vendor.url.host)
})
