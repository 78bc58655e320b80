// An engine under a storm, as a process of its own, to be killed at any moment: starts random teams, cancels, resumes,
// decides, while the clock steps. With `calm` it starts nothing, answers every question, and ends when nothing is open.
// Says on stderr what must not be, and exits 1.
//
//   bun tests/support/chaos-engine.ts HOME VENDOR_URL SEED [calm]

import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { CadreError } from '../../lib/error.ts'
import type { JsonObject } from '../../lib/json.ts'
import { CHOICES, type ReviewRow } from '../../lib/run/engine.ts'
import { testEngine } from './engine.ts'
import { type Random, randomFrom } from './random.ts'

const SLOTS = 4
/** Runs that are open at once, about. */
const BUSY = 6
const CALM_MS = 20_000

let active = 0

const leaf = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Takes its time, writes a file, fails as it is told.',
  settings: Type.Object({}),
  source: {
    effect: 'idempotent',
    entry: Type.Object({
      name: Type.String(),
      takes: Type.Number(),
      fails: Type.Optional(Type.String()),
      value: Type.Optional(Type.Any()),
    }),
    async run({ name, takes, fails, value }, context) {
      active++
      try {
        if (active > SLOTS) complain(`${active} leaf phases at once, there are ${SLOTS} slots`)
        context.log(`attempt ${context.attempt}`)
        await Bun.sleep(takes)
        if (context.signal.aborted) throw new AgentError('stopped', { code: 'aborted' })
        await context.write(name, `${context.run.id} ${context.attempt}`)
        if (fails === 'always' || (fails === 'first' && context.attempt === 1)) {
          throw new AgentError('told to', { retryable: fails === 'first' })
        }
        return { text: name, data: { value: value ?? null, items: itemsOf(context.attempt) } }
      } finally {
        active--
      }
    },
  },
})

/** Others in every attempt, at other places. */
const itemsOf = (attempt: number) => [0, 1, 2, 3].map(n => (n * 3 + attempt) % 5).filter(n => n !== attempt % 3)

const Post = Type.Object({ name: Type.String() })
interface Caller {
  key: string
  settings: { url: string }
  fetch(url: string, options?: { method?: string; body?: string; timeout?: number }): Promise<Response>
}

/** A refusal says that nothing was written; whatever else goes wrong leaves it open. */
async function post({ key, settings, fetch }: Caller, what: string) {
  const reply = await fetch(`${settings.url}/${what}`, { method: 'POST', body: key, timeout: 2_000 })
  if (reply.status === 409) throw new AgentError('refused', { code: 'refused', sent: 'no' })
  if (!reply.ok) throw new AgentError(`HTTP ${reply.status}`, { sent: 'unknown' })
  return { text: what, data: {}, external: { id: key } }
}

const vendor = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Tickets can be looked for, mails cannot.',
  settings: Type.Object({ url: Type.String() }),
  actions: {
    ticket: {
      direction: 'target',
      effect: 'once',
      entry: Post,
      run: (_, context) => post(context, 'ticket'),
      async find(_, { key, settings, fetch }) {
        const { status } = await fetch(`${settings.url}/ticket?key=${key}`)
        if (status !== 200 && status !== 404) throw new AgentError(`HTTP ${status}`)
        return status === 404 ? null : { text: 'found', data: {}, external: { id: key } }
      },
    },
    mail: { direction: 'target', effect: 'once', entry: Post, run: (_, context) => post(context, 'mail') },
  },
  notify: { effect: 'once', entry: Type.Object({}), run: (_, context) => post(context as Caller, 'event') },
})

/** A random team and the teams below it, as files. */
function teamOf(random: Random, depth: number, folder = ''): Record<string, string> {
  const files: Record<string, string> = {}
  const leaves = new Set<string>()
  const phases: JsonObject[] = Array.from({ length: 1 + random.below(4) }, (_, position) => {
    const name = `p${position}`
    const depends = Array.from({ length: position }, (_, n) => `p${n}`).filter(() => random.once(2))
    const source = depends.find(phase => leaves.has(phase))
    const phase: JsonObject = {
      name,
      depends_on: depends,
      on_failure: random.of(['fail', 'fail', 'continue', 'escalate']),
      ...(random.once(6) && { always: true }),
      ...(random.once(8) && { when: random.of(['1 > 2', 'inputs.n < 2']) }),
    }
    const kind = random.of(
      depth > 0 ? ['leaf', 'leaf', 'team', 'map', 'gate', 'ticket', 'mail'] : ['leaf', 'leaf', 'exec'],
    )
    if (kind === 'team' || kind === 'map') Object.assign(files, teamOf(random, depth - 1, `${folder}${name}/`))
    if (kind === 'leaf') leaves.add(name)
    switch (kind) {
      case 'leaf':
        return {
          ...phase,
          agent: 'leaf',
          sources: [
            {
              name: 'x.txt',
              takes: random.below(30),
              ...(random.once(3) && { fails: random.of(['always', 'first']) }),
            },
          ],
          retry: { attempts: 1 + random.below(3), backoff: `${1 + random.below(50)}ms` },
          ...(random.once(8) && { timeout: '10ms' }),
        }
      case 'exec':
        return {
          ...phase,
          agent: 'exec',
          commands: [{ name: 'c', run: random.of(['echo said; echo x > "$CADRE_OUT/x.txt"', 'sleep 0.02', 'exit 1']) }],
        }
      case 'gate':
        return {
          ...phase,
          type: 'gate',
          ...(random.once(2) && { commands: [{ name: 'c', run: 'true' }] }),
          review: { prompt: 'Go on?', reviewers: ['any'], ...(random.once(3) && { timeout: '40ms' }) },
        }
      case 'team':
        return { ...phase, type: 'team', team: `./${name}`, inputs: { n: '{{ inputs.n }}' } }
      case 'map':
        return {
          ...phase,
          type: 'map',
          team: `./${name}`,
          items: source
            ? `{{ phases.${source}.data == null ? dyn([]) : dyn(phases.${source}.data.items) }}`
            : Array.from({ length: random.below(4) }, (_, n) => n),
          key: 'k{{ item }}',
          inputs: { n: '{{ item }}' },
          on_item_failure: random.of(['stop', 'continue']),
          concurrency: 1 + random.below(3),
        }
      default: {
        const entries = Array.from({ length: 1 + random.below(2) }, (_, n) => ({ name: `e${n}` }))
        return {
          ...phase,
          agent: 'vendor',
          action: kind,
          target_entries: entries,
          retry: { attempts: 2, backoff: '5ms' },
        }
      }
    }
  })
  if (random.once(3))
    phases.push({ name: 'tell', agent: 'vendor', notify: ['on_start', 'on_complete', 'on_fail', 'on_phase_fail'] })
  const first = phases[0]!
  const document = first.agent === 'leaf' || first.agent === 'exec'
  files[`${folder}team.yml`] = JSON.stringify({
    name: '@local/chaos',
    version: '1.0.0',
    inputs: [{ name: 'n', type: 'number', required: true }],
    ...(document && {
      outputs: [
        {
          name: 'doc',
          type: 'file',
          value: '{{ phases.p0.files.size() == 0 ? dyn(null) : dyn(phases.p0.files[0].path) }}',
        },
      ],
    }),
    ...(random.once(6) && { timeout: `${50 + random.below(300)}ms` }),
    ...(random.once(3) && { concurrency: 1 + random.below(2) }),
    phases,
  })
  return files
}

function complain(what: string): never {
  console.error(what)
  process.exit(1)
}

const [home, url, seed, calm] = process.argv.slice(2)
const random = randomFrom(Number(seed))
let offset = random.below(2_000) - 1_000
const t = await testEngine({
  home: home!,
  agents: { leaf, vendor },
  settings: { vendor: { url: url! } },
  slots: SLOTS,
  settle: 300,
  now: () => Date.now() + offset,
})
const { engine } = t
const { db } = engine.store
console.log('ready')

const anyRun = (where: string) =>
  db.query<{ id: string }, []>(`SELECT id FROM runs WHERE parent_id IS NULL AND ${where}`).all()
const open = () => anyRun('completed_at IS NULL').length

/** What is refused because it came too late is no fault. */
async function may(work: Promise<unknown>, ...late: string[]): Promise<void> {
  await work.catch(error => {
    if (error instanceof CadreError && late.includes(error.code)) return
    complain(error instanceof Error ? (error.stack ?? error.message) : String(error))
  })
}

async function decideOne(): Promise<void> {
  const reviews = db.query<ReviewRow, []>("SELECT * FROM reviews WHERE state = 'pending'").all()
  if (reviews.length === 0) return
  const { id, kind, entries } = random.of(reviews)
  // To send an entry again that may have arrived is a person's right, and would look like a second write here.
  const choices = CHOICES[kind].filter(choice => choice !== 'retry' || (entries === '[]' && !calm))
  // A gate may have become an escalation meanwhile.
  await may(engine.decide(id, { decision: random.of(choices), by: 'chance' }), 'invalid_state', 'invalid_request')
}

async function act(): Promise<void> {
  switch (random.below(8)) {
    case 0:
    case 1:
    case 2:
      if (open() < BUSY) await may(t.start(teamOf(random, 2), { n: random.below(4) }))
      return
    case 3: {
      const runs = anyRun('completed_at IS NULL')
      if (runs.length > 0 && random.once(2)) await may(engine.cancel(random.of(runs).id), 'invalid_state')
      return
    }
    case 4: {
      const runs = anyRun('completed_at IS NOT NULL')
      const from = random.once(2) ? `p${random.below(3)}` : null
      if (runs.length > 0) await may(engine.resume(random.of(runs).id, { from }), 'invalid_state', 'invalid_request')
      return
    }
    case 5:
      offset = random.below(2_000) - 1_000
      return
    default:
      await decideOne()
  }
}

if (!calm) {
  for (;;) {
    const { slots } = engine.load
    if (slots < 0 || slots > SLOTS) complain(`${slots} slots are in use, there are ${SLOTS}`)
    await act()
    await Bun.sleep(random.below(6))
  }
}
const deadline = performance.now() + CALM_MS
while (open() > 0) {
  if (performance.now() > deadline) {
    const rows = db
      .query(
        `SELECT runs.id, runs.state, team_key, ending, position, phases.state AS phase, phases.reason, phases.attempt, due_at
         FROM runs JOIN phases ON run_id = id WHERE runs.completed_at IS NULL AND phases.completed_at IS NULL`,
      )
      .all()
    complain(`runs are still open: ${JSON.stringify(rows, null, 1)}`)
  }
  await decideOne()
  await Bun.sleep(2)
}
for (const { id } of anyRun('TRUE')) await engine.ended(id)
const { runs, slots } = engine.load
if (runs !== 0 || slots !== 0) complain(`nothing is open, but ${runs} runs are in memory and ${slots} slots in use`)
await t.close()
