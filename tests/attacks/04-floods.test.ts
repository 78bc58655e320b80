// Commands that print without end, in lines without end, or into what is no file: the daemon answers, stops them, stays
// small, and says what it did not keep.

import { expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { paced, readLines } from '../../lib/agent/commands/output.ts'
import { type LogLine, readLines as readLog } from '../../lib/run/engine.ts'
import { createRedactor } from '../../lib/secrets/redact.ts'
import { until, within } from '../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { randomFrom, seedOf } from '../support/random.ts'

const SLOW = 120_000
const MIB = 1_048_576

const team = (...commands: string[]) =>
  files({
    'team.yml': `name: "@local/flood"
version: 1.0.0
phases:
${commands.map((run, n) => `  - { name: p${n}, agent: exec, commands: [{ name: c, run: ${JSON.stringify(run)} }] }`).join('\n')}
`,
  })

const start = async (daemon: RunningDaemon, path: string): Promise<string> =>
  (await daemon.call('/v1/runs/start', { path })).run_id

/** All lines of a run. */
async function linesOf(daemon: RunningDaemon, run_id: string, query: object = {}): Promise<LogLine[]> {
  const all: LogLine[] = []
  for (let after_seq = 0; ; ) {
    const { lines, next } = await daemon.call('/v1/runs/logs', { run_id, after_seq, limit: 1_000, ...query })
    if (next === after_seq) return all
    all.push(...lines)
    after_seq = next
  }
}

const memoryOf = ({ pid }: RunningDaemon): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1_024

const missingIn = (lines: readonly LogLine[]): number =>
  lines.reduce((sum, { fields }) => sum + Number(fields?.missing_lines ?? 0), 0)

const isPrinted = ({ stream }: LogLine): boolean => stream === 'stdout'

test(
  'eight commands that print as fast as they can stop no call, no cancel and no time-out',
  async () => {
    const daemon = await spawnDaemon({ env: { CADRE_LOG_LIMIT: '2MiB' } })
    const endless = team(
      'yes',
      'yes ""',
      "yes '\\0\\n\\r'",
      'cat /dev/zero',
      'cat /dev/urandom',
      'yes >&2',
      'yes',
      'yes',
    )
    const limited = files({
      'team.yml': `name: "@local/limited"
version: 1.0.0
phases: [{ name: p, agent: exec, timeout: 2s, commands: [{ name: c, run: "yes" }] }]
`,
    })
    const run_id = await start(daemon, endless)
    const late = await start(daemon, limited)
    const until = performance.now() + 4_000
    let most = 0
    while (performance.now() < until) {
      expect((await within(fetch(`${daemon.url}/health`), 'an answer', 10_000)).status).toBe(200)
      most = Math.max(most, memoryOf(daemon))
    }
    const timedOut = await within(daemon.ended(late), 'the time-out')
    expect([timedOut.state, timedOut.error?.code]).toEqual(['failed', 'timeout'])
    await daemon.call('/v1/runs/cancel', { run_id })
    expect((await within(daemon.ended(run_id), 'the cancel')).state).toBe('cancelled')
    expect(Math.max(most, memoryOf(daemon)) / MIB).toBeLessThan(300)
    expect(statSync(join(daemon.home, 'runs', run_id, 'log.jsonl')).size).toBeLessThan(6 * MIB)
    await daemon.stop()
  },
  SLOW,
)

test(
  'beyond its limit a log counts lines, keeps the last ones, and says what is missing, also of one phase',
  async () => {
    const daemon = await spawnDaemon({ env: { CADRE_LOG_LIMIT: '1 MiB' } })
    const run_id = await start(daemon, team('seq 300000', 'sleep 1; seq 1000000 1100000 >&2'))
    expect((await within(daemon.ended(run_id), 'the run', 60_000)).state).toBe('completed')
    const lines = await linesOf(daemon, run_id)
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, at) => at + 1))
    for (const [phase, stream, printed, last] of [
      ['p0', 'stdout', 300_000, '300000'],
      ['p1', 'stderr', 100_001, '1100000'],
    ] as const) {
      const said = lines.filter(line => line.phase === phase)
      const kept = said.filter(line => line.stream === stream)
      expect(kept.length + missingIn(said)).toBe(printed)
      expect(said.some(({ text }) => text.startsWith(`${missingIn(said)} lines (`))).toBe(true)
      expect((await linesOf(daemon, run_id, { phase })).map(({ seq }) => seq)).toEqual(said.map(({ seq }) => seq))
      if (phase === 'p1') expect(kept.at(-1)?.text).toBe(last)
    }
    expect(statSync(join(daemon.home, 'runs', run_id, 'log.jsonl')).size).toBeLessThan(2 * MIB)
    await daemon.stop()
  },
  SLOW,
)

test(
  'a daemon that was killed in a flood has every line that it showed, and the same bounds, when it is printed again',
  async () => {
    const daemon = await spawnDaemon({ env: { CADRE_LOG_LIMIT: '1MiB' } })
    const run_id = await start(daemon, team('seq 200000; yes'))
    const shown = await until(async () => {
      const lines = await linesOf(daemon, run_id)
      return lines.some(({ fields }) => fields?.log_full === true) && lines
    }, 'a full log')
    await daemon.kill('SIGKILL')
    const again = await spawnDaemon({ home: daemon.home, env: { CADRE_LOG_LIMIT: '1MiB' } })
    expect((await linesOf(again, run_id)).slice(0, shown.length)).toEqual(shown)
    await Bun.sleep(2_000)
    expect((await within(fetch(`${again.url}/health`), 'an answer', 10_000)).status).toBe(200)
    expect(memoryOf(again) / MIB).toBeLessThan(300)
    await again.call('/v1/runs/cancel', { run_id })
    await within(again.ended(run_id), 'the cancel')
    const lines = await until(async () => {
      const all = await linesOf(again, run_id)
      return missingIn(all) > 0 && all
    }, 'what is missing')
    expect(lines.slice(0, shown.length)).toEqual(shown)
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, at) => at + 1))
    expect(lines.some(({ text }) => text.includes('nobody knows how many'))).toBe(true)
    expect(statSync(join(again.home, 'runs', run_id, 'log.jsonl')).size).toBeLessThan(2 * MIB)
    await again.stop()
  },
  SLOW,
)

test(
  'a line of 100 MB is cut into lines, and the command behind it is not held up',
  async () => {
    const daemon = await spawnDaemon({ env: { CADRE_LOG_LIMIT: '4MiB' } })
    const run_id = await start(daemon, team('head -c 100000000 /dev/zero | tr "\\\\0" x; echo; echo end'))
    const run = await within(daemon.ended(run_id), 'the run', 60_000)
    expect(run.state).toBe('completed')
    const lines = await linesOf(daemon, run_id)
    expect(lines.at(-1)?.text).toBe('end')
    expect(lines.filter(isPrinted).every(({ text }) => text.length <= 65_536)).toBe(true)
    await daemon.stop()
  },
  SLOW,
)

test(
  'a process that left its group and goes on printing does not keep the phase',
  async () => {
    const daemon = await spawnDaemon()
    const run_id = await start(daemon, team('setsid yes & echo $!'))
    const run = await within(daemon.ended(run_id), 'the run', 60_000)
    expect(run.state).toBe('completed')
    // It is told by a closed pipe.
    const [first] = (await linesOf(daemon, run_id)).filter(({ text }) => /^\d+$/.test(text))
    await until(() => !isAlive(Number(first!.text)), 'the end of the process')
    await daemon.stop()
  },
  SLOW,
)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test(
  'CADRE_RESULT or CADRE_OUTPUT that is a pipe, a device, a folder, a link or too large ends the phase with words',
  async () => {
    const daemon = await spawnDaemon()
    for (const [run, said] of [
      ['mkfifo "$CADRE_RESULT"', 'not a regular file'],
      ['mkdir "$CADRE_RESULT"', 'not a regular file'],
      ['ln -s /dev/zero "$CADRE_RESULT"', 'ELOOP'],
      ['truncate -s 1T "$CADRE_RESULT"', 'at most 1048576'],
      ['mkfifo "$CADRE_OUTPUT"', 'not a regular file'],
      ['ln -s /dev/zero "$CADRE_OUTPUT"', 'ELOOP'],
      ['truncate -s 1T "$CADRE_OUTPUT"', 'at most 1048576'],
    ] as const) {
      const record = await within(daemon.ended(await start(daemon, team(run))), run)
      expect([record.state, record.error?.message.includes(said)]).toEqual(['failed', true])
    }
    await daemon.stop()
  },
  SLOW,
)

test(
  'a huge file in CADRE_OUT does not outlast a cancel',
  async () => {
    const daemon = await spawnDaemon()
    const run_id = await start(daemon, team('truncate -s 4T "$CADRE_OUT/huge"; mkfifo "$CADRE_OUT/pipe"'))
    await Bun.sleep(1_000)
    expect((await within(fetch(`${daemon.url}/health`), 'an answer', 10_000)).status).toBe(200)
    await daemon.call('/v1/runs/cancel', { run_id })
    expect((await within(daemon.ended(run_id), 'the cancel')).state).toBe('cancelled')
    await daemon.stop()
  },
  SLOW,
)

test('a command that never reads its input ends by its time-out', async () => {
  const { callContext } = await import('../../lib/testing/call-context.ts')
  const { runCommand } = await import('../../lib/agent/command.ts')
  const dir = folder()
  const { context } = callContext({ stateDir: dir, workspace: dir })
  const command = { name: 'c', command: ['sleep', '60'], cwd: dir, env: { ...context.env }, input: 'x'.repeat(8 * MIB) }
  const given = { ...command, timeout: '300ms', retryable: false, notStarted: 'here', hint: '' }
  expect(within(runCommand(context, given), 'the time-out')).rejects.toMatchObject({ code: 'timeout' })
})

test(
  'a command of the settings that floods its stderr stops no call',
  async () => {
    const daemon = await spawnDaemon()
    const set = within(
      daemon.post('/v1/settings/set', { values: { 'agents.wiki.api_token': '${cmd:yes >&2}' } }),
      'the setting',
      60_000,
    )
    set.catch(() => {})
    for (let n = 0; n < 20; n++) {
      expect((await within(fetch(`${daemon.url}/health`), 'an answer', 10_000)).status).toBe(200)
      await Bun.sleep(50)
    }
    await daemon.kill('SIGKILL')
  },
  SLOW,
)

test(
  'a client that does not read the events of a flood costs no memory, and the log has every line',
  async () => {
    const daemon = await spawnDaemon()
    const run_id = await start(daemon, team('sleep 1; seq 400000'))
    const reply = await fetch(`${daemon.url}/v1/runs/stream?run_id=${run_id}`)
    const reader = reply.body!.getReader()
    await reader.read()
    expect((await within(daemon.ended(run_id), 'the run', 60_000)).state).toBe('completed')
    expect(memoryOf(daemon) / MIB).toBeLessThan(300)
    // It reads on, and nothing is missing.
    let rest = ''
    let last = 0
    const decoder = new TextDecoder()
    for (let isOver = false; !isOver; ) {
      const { done, value } = await within(reader.read(), 'an event', 30_000)
      if (done) break
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n')
      rest = blocks.pop()!
      for (const block of blocks) {
        isOver ||= /^event: end$/m.test(block)
        if (!/^event: log$/m.test(block)) continue
        const { lines } = JSON.parse(/^data: (.*)$/m.exec(block)![1]!) as { lines: LogLine[] }
        for (const { seq } of lines) expect(seq).toBe(++last)
      }
    }
    expect(last).toBe(400_000)
    await daemon.stop()
  },
  SLOW,
)

test('no turn of the event loop handles more than its share, however many streams always have data', async () => {
  // Each kind of flood by itself would fill the loop.
  const kinds = ['\n'.repeat(65_536), 'y\n'.repeat(32_768), 'x'.repeat(65_536), `${'z'.repeat(90)}\n`.repeat(700)]
  const turns: number[] = []
  let work = 0
  let isOver = false
  const turn = () => {
    if (work > 0) turns.push(work)
    work = 0
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const readings = Array.from({ length: 8 }, (_, n) => {
    const chunk = Buffer.from(kinds[n % kinds.length]!)
    const endless = new ReadableStream<Uint8Array>({ pull: controller => controller.enqueue(new Uint8Array(chunk)) })
    return readLines(paced(endless), {
      mask: () => createRedactor(['a secret of the flood']).stream(),
      isFull: () => false,
      line: text => {
        work += text.length + 1 + 256
      },
      missed: () => {},
      text: () => {},
      head: 0,
    })
  })
  await Bun.sleep(1_500)
  for (const reading of readings) reading.stop()
  await Promise.all(readings.map(({ done }) => done))
  isOver = true
  expect(turns.length).toBeGreaterThan(20)
  // The budget of a turn, the last piece, and a line that was begun in earlier ones.
  expect(Math.max(...turns)).toBeLessThanOrEqual((128 + 80 + 64) * 1_024)
})

test(
  'what is kept after a gap has no secret, wherever the gap cuts one',
  async () => {
    const random = randomFrom(seedOf('gap'))
    for (let round = 0; round < 20; round++) {
      const secret = `${'s3cret'.repeat(1 + Math.floor(random() * 40))}!`
      const filler = 'f'.repeat(Math.floor(random() * 200))
      const line = Buffer.from(`${filler}${secret}${random() < 0.5 ? '\n' : ''}`)
      const all = Buffer.alloc(line.length * Math.ceil((900_000 + random() * 400_000) / line.length), line)
      const redactor = createRedactor([secret])
      const texts: string[] = []
      let missed = 0
      let asked = 0
      const reading = readLines(paced(cut(all, random)), {
        mask: () => redactor.stream(),
        isFull: () => ++asked > 3,
        line: text => void texts.push(text),
        missed: (_, bytes) => {
          missed += bytes
        },
        text: () => {},
        head: 0,
      })
      await reading.done
      expect(missed).toBeGreaterThan(0)
      const said = texts.join('\n')
      expect(said.includes(secret.slice(0, -1))).toBe(false)
      expect(said.includes(secret.slice(1))).toBe(false)
    }
  },
  SLOW,
)

function cut(all: Uint8Array, random: () => number): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at === all.byteLength) return controller.close()
      const end = Math.min(all.byteLength, at + 1 + Math.floor(random() * 100_000))
      controller.enqueue(all.slice(at, end))
      at = end
    },
  })
}

test('a page of a log is bounded in bytes, and pages give every line once', async () => {
  const dir = folder()
  const text = 'ü'.repeat(60_000)
  const lines = Array.from({ length: 120 }, (_, n) => ({ seq: n + 1, phase: 'a', at: n, stream: 'stdout', text }))
  await Bun.write(join(dir, 'log.jsonl'), lines.map(line => `${JSON.stringify(line)}\n`).join(''))
  const seqs: number[] = []
  let pages = 0
  for (let afterSeq = 0; ; pages++) {
    const page = await readLog(dir, { afterSeq, limit: 1_000 })
    expect(JSON.stringify(page.lines).length).toBeLessThan(5 * MIB)
    seqs.push(...page.lines.map(({ seq }) => seq))
    if (page.next === afterSeq) break
    afterSeq = page.next
  }
  expect(seqs).toEqual(lines.map(({ seq }) => seq))
  expect(pages).toBeGreaterThan(2)
})
