// Agents that do what no agent should: whatever they throw, return, write or ignore fails their own phase by name. No other
// run notices, and no restart repeats what was done.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentContext, AgentResult } from '../../../lib/agent/agent-context.ts'
import { AgentError, agent, Type } from '../../../lib/agent/cadre.ts'
import type { RunId } from '../../../lib/files/run-id.ts'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { phaseOf } from '../../support/home.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { act, scripted, shell, team } from '../../support/scripted.ts'

let does: (context: AgentContext) => unknown
let wildCalls = 0
const handler = (effect: 'read' | 'idempotent' | 'once') => ({
  effect,
  entry: Type.Object({ name: Type.String() }),
  async run(_: unknown, context: unknown) {
    wildCalls++
    return (await does(context as AgentContext)) as AgentResult
  },
})
const wild = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Does what no agent should.',
  settings: Type.Object({}),
  source: handler('idempotent'),
  target: handler('once'),
})
let held = Promise.withResolvers<void>()
const { agents, calls } = scripted({ hold: () => held.promise, work: () => {} })

let home: string
let t: TestEngine
let innocent: RunId
const open = async () => {
  t = await testEngine({ home, agents: { ...agents, wild } })
}
const ended = (runId: string, ms?: number) => within(t.engine.ended(runId), 'the end of the run', ms)

// A run that has nothing to do with it is at work all the time, and ends as if nothing had been.
beforeEach(async () => {
  home = folder()
  held = Promise.withResolvers()
  wildCalls = 0
  calls.length = 0
  await open()
  const { run_id } = await t.start(team([act('first', 'work'), act('second', 'hold', { depends_on: ['first'] })]))
  innocent = run_id
  await until(() => phaseOf(t, innocent, 'second').state === 'running', 'the other run')
})
afterEach(async () => {
  held.resolve()
  const called = wildCalls
  try {
    expect(await ended(innocent)).toMatchObject({ state: 'completed' })
    for (const name of ['first', 'second']) expect(phaseOf(t, innocent, name)).toMatchObject({ attempt: 1 })
    expect(calls).toEqual(['work', 'hold'])
  } finally {
    await within(t.close(), 'the stop')
  }
  // The next start has nothing to go on with.
  await open()
  try {
    await Bun.sleep(50)
    expect(wildCalls).toBe(called)
    expect(t.engine.load).toMatchObject({ runs: 0, slots: 0 })
  } finally {
    await within(t.close(), 'the second stop')
  }
  checkInvariants(home)
}, 40_000)

/** The phase `wild` fails by name after one call; what does not depend on it completes. */
async function failsByName(kind: 'sources' | 'target_entries' = 'sources', more = {}) {
  const { run_id } = await t.start(
    team([
      { name: 'wild', agent: 'wild', [kind]: [{ name: 'x' }], ...more },
      shell('beside', 'true'),
      shell('after', 'true', { depends_on: ['wild'] }),
    ]),
  )
  const record = await ended(run_id, 15_000)
  expect(record).toMatchObject({ state: 'failed', error: { phase: 'wild' } })
  expect(record.error!.code).toBeString()
  expect(record.error!.message).toBeString()
  expect(record.error!.message).not.toBe('')
  expect(phaseOf(t, run_id, 'wild')).toMatchObject({ state: 'failed', attempt: 1, data: null, files: [] })
  expect(phaseOf(t, run_id, 'beside')).toMatchObject({ state: 'completed' })
  expect(phaseOf(t, run_id, 'after')).toMatchObject({ state: 'skipped', reason: 'upstream' })
  expect(wildCalls).toBe(1)
  return record.error!
}

const boom = (): never => {
  throw new Error('read me not')
}
/** Throws whatever is asked of it. */
const hostile = () => new Proxy({}, new Proxy({}, { get: () => boom }))
class Thing {
  a = 1
}
const cyclic = () => {
  const value: Record<string, unknown> = {}
  value.self = value
  return value
}

const thrown: [what: string, value: () => unknown][] = [
  ['undefined', () => undefined],
  ['null', () => null],
  ['a text', () => 'just a text'],
  ['a number', () => 42],
  ['a symbol', () => Symbol('odd')],
  ['a BigInt', () => 10n],
  ['an object without a prototype', () => Object.create(null)],
  ['an error whose message throws', () => Object.defineProperty(new Error('x'), 'message', { get: boom })],
  ['an error whose message is no text', () => Object.assign(new Error('x'), { message: { deep: 10n } })],
  [
    'an error whose code and cause throw',
    () => Object.defineProperties(new Error('told'), { code: { get: boom }, cause: { get: boom } }),
  ],
  [
    'an error that is its own cause',
    () => {
      const error = new Error('round')
      return Object.assign(error, { cause: error })
    },
  ],
  ['an object whose toString throws', () => ({ toString: boom })],
  ['a proxy that throws whatever is asked', hostile],
  [
    'an AgentError with odd parts',
    () => Object.assign(new AgentError('odd'), { code: cyclic(), hint: 10n, retryable: hostile() }),
  ],
]
describe.each(thrown)('an agent that throws %s', (_, value) => {
  test.each(['sources', 'target_entries'] as const)('in %s fails its phase by name', async kind => {
    does = () => {
      throw value()
    }
    if (kind === 'sources') return void (await failsByName(kind))
    // A write of which nobody knows whether it arrived asks a person; it is neither lost nor sent again.
    const { run_id } = await t.start(team([{ name: 'wild', agent: 'wild', target_entries: [{ name: 'x' }] }]))
    await until(() => ['awaiting_input', 'failed'].includes(phaseOf(t, run_id, 'wild').state), 'the end of the attempt')
    await t.engine.cancel(run_id).catch(() => {})
    expect(['cancelled', 'failed']).toContain((await ended(run_id)).state)
    expect(wildCalls).toBe(1)
  })
})

const returned: [what: string, value: () => unknown][] = [
  ['nothing', () => undefined],
  ['null', () => null],
  ['a text', () => 'done'],
  ['an instance of a class', () => new Thing()],
  ['data that refers to itself', () => ({ text: 'x', data: cyclic() })],
  ['a BigInt in its data', () => ({ text: 'x', data: { deep: [10n] } })],
  [
    'data that throws when it is read',
    () => ({ text: 'x', data: Object.defineProperty({}, 'a', { enumerable: true, get: boom }) }),
  ],
  ['data that throws when it becomes JSON', () => ({ text: 'x', data: { toJSON: boom } })],
  ['a text that is none', () => ({ text: { a: 1 }, data: {} })],
  ['a proxy that throws whatever is asked', hostile],
  [
    'data nested 100,000 deep',
    () => {
      let data: unknown = 1
      for (let n = 0; n < 100_000; n++) data = [data]
      return { text: 'x', data }
    },
  ],
]
test.each(returned)('an agent that returns %s fails its phase by name', async (_, value) => {
  does = value
  await failsByName()
})

describe('an agent that writes links', () => {
  /** A folder of somebody else, with a file. */
  const foreign = () => {
    const outside = folder()
    writeFileSync(join(outside, 'kept.txt'), 'kept')
    return outside
  }
  /** The agent links the place where the phase `name` has its files to a foreign folder, which this gives. */
  const misleads = (name: string) => {
    const outside = foreign()
    does = context => {
      const files = join(context.stateDir, 'files')
      mkdirSync(files, { recursive: true })
      symlinkSync(outside, join(files, name))
      return { text: 'x' }
    }
    return outside
  }

  test('into its own folder cannot write through them', async () => {
    const outside = foreign()
    does = async context => {
      mkdirSync(join(context.stateDir, 'files', 'wild'), { recursive: true })
      symlinkSync(outside, join(context.stateDir, 'files', 'wild', 'link'))
      await context.write('link/stolen.txt', 'stolen')
      return { text: 'x' }
    }
    await failsByName()
    expect(readdirSync(outside)).toEqual(['kept.txt'])
  })

  test('in the place of its own folder cannot write through it, nor have it emptied by the next attempt', async () => {
    const outside = foreign()
    does = async context => {
      const files = join(context.stateDir, 'files')
      mkdirSync(files, { recursive: true })
      rmSync(join(files, 'wild'), { recursive: true, force: true })
      symlinkSync(outside, join(files, 'wild'))
      if (context.attempt === 1) throw new AgentError('again', { retryable: true })
      await context.write('stolen.txt', 'stolen')
      return { text: 'x' }
    }
    const retry = { attempts: 2, backoff: '1ms' }
    const { run_id } = await t.start(
      team([{ name: 'wild', agent: 'wild', sources: [{ name: 'x' }], retry }, shell('beside', 'true')]),
    )
    expect(await ended(run_id)).toMatchObject({ state: 'failed', error: { phase: 'wild' } })
    expect(readdirSync(outside)).toEqual(['kept.txt'])
    expect(readFileSync(join(outside, 'kept.txt'), 'utf8')).toBe('kept')
  })

  test('in the place of a later command’s folder leads no file of it outside', async () => {
    const outside = misleads('later')
    const { run_id } = await t.start(
      team([
        { name: 'wild', agent: 'wild', sources: [{ name: 'x' }] },
        shell('later', 'echo made > "$CADRE_OUT/made.txt"', { depends_on: ['wild'] }),
      ]),
    )
    const { state, error } = await ended(run_id)
    // Its folder is made anew, or it fails by name: either is right, a file outside is not.
    if (state === 'failed') expect(error).toMatchObject({ phase: 'later' })
    else expect(phaseOf(t, run_id, 'later').files.map(file => file.path)).toEqual(['files/later/made.txt'])
    expect(readdirSync(outside)).toEqual(['kept.txt'])
  })

  test('in the place of a later team’s folder leads no file of it outside', async () => {
    const outside = misleads('later')
    const { run_id } = await t.start({
      'team.yml': team([
        { name: 'wild', agent: 'wild', sources: [{ name: 'x' }] },
        { name: 'later', type: 'team', team: './child', depends_on: ['wild'] },
      ]),
      'child/team.yml': team([shell('make', 'echo made > "$CADRE_OUT/made.txt"')], {
        outputs: [{ name: 'made', type: 'file', value: 'files/make/made.txt' }],
      }),
    })
    const { state, error } = await ended(run_id)
    if (state === 'failed') expect(error).toMatchObject({ phase: 'later' })
    expect(readdirSync(outside)).toEqual(['kept.txt'])
  })

  test('in the place of its state folder’s `files` reaches nothing outside', async () => {
    const outside = folder()
    does = async context => {
      mkdirSync(context.stateDir, { recursive: true })
      rmSync(join(context.stateDir, 'files'), { recursive: true, force: true })
      symlinkSync(outside, join(context.stateDir, 'files'))
      await context.write('stolen.txt', 'stolen')
      return { text: 'x' }
    }
    const { run_id } = await t.start(team([{ name: 'wild', agent: 'wild', sources: [{ name: 'x' }] }]))
    expect(await ended(run_id)).toMatchObject({ state: 'failed', error: { phase: 'wild' } })
    expect(readdirSync(outside)).toEqual([])
    expect(existsSync(t.engine.stateDir(innocent))).toBeBoolean()
  })
})

describe('an agent that never returns and ignores its signal', () => {
  const never = () => new Promise(() => {})

  test('fails its phase by its timeout, and gives its slot back', async () => {
    does = never
    expect((await failsByName('sources', { timeout: '100ms' })).code).toBe('timeout')
    expect(t.engine.load.slots).toBe(1)
  }, 40_000)

  test('ends with the timeout of its run', async () => {
    does = never
    const { run_id } = await t.start(
      team([{ name: 'wild', agent: 'wild', sources: [{ name: 'x' }] }], { timeout: '100ms' }),
    )
    expect(await ended(run_id, 15_000)).toMatchObject({ state: 'failed', reason: 'timeout' })
    expect(t.engine.load.slots).toBe(1)
  }, 40_000)

  test('cannot write to the log after its run has ended and the secrets are forgotten', async () => {
    const late = Promise.withResolvers<void>()
    const spoken = Promise.withResolvers<void>()
    does = async context => {
      await late.promise
      context.log('the token is s3cr3t-value')
      spoken.resolve()
    }
    const { run_id } = await t.start(
      team([{ name: 'wild', agent: 'wild', sources: [{ name: 'x' }], timeout: '100ms' }], {
        inputs: [{ name: 'token', type: 'string', secret: true, required: true }],
      }),
      { token: 's3cr3t-value' },
    )
    await ended(run_id, 15_000)
    await until(() => !existsSync(join(home, 'secrets', run_id)), 'the secret is forgotten')
    late.resolve()
    await spoken.promise
    t.engine.logs.flush()
    const log = readFileSync(join(t.engine.stateDir(run_id), 'log.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
    expect(log.map(line => JSON.parse(line).text)).toEqual([expect.stringMatching(/^failed: .*100ms/)])
  }, 40_000)

  test('changes nothing when it returns after all', async () => {
    const late = Promise.withResolvers<AgentResult>()
    does = () => late.promise
    const { run_id } = await t.start(
      team([{ name: 'wild', agent: 'wild', sources: [{ name: 'x' }], timeout: '100ms' }]),
    )
    expect(await ended(run_id, 15_000)).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
    const before = JSON.stringify(t.engine.phases(run_id))
    late.resolve({ text: 'after all', data: { late: true } })
    await Bun.sleep(100)
    expect(JSON.stringify(t.engine.phases(run_id))).toBe(before)
  }, 40_000)
})
