// What must be true of an agent while its vendor works: its settings are checked and named, its doctor says whose the
// credential is, its schemas refuse what they should, and its results can be recorded.

import { expect } from 'bun:test'
import type { TSchema } from 'typebox'
import { MAX_DATA_BYTES } from '../agent/agent-context.ts'
import { AgentError } from '../agent/core/agent-error.ts'
import { notJson } from '../json.ts'
import { problems } from '../schema/schema.ts'
import { teamJsonSchema } from '../team/team.ts'
import { isFake, refusal, type Vendor } from './fake-vendor.ts'
import { shownIn } from './secrecy.ts'
import type { Subject } from './subject.ts'
import { attempt, check, type Trial, timesSent, withOtherSecrets } from './trial.ts'

/** The agent as a whole. */
export function soundness<V extends Vendor>(subject: Subject<V>, open: () => V | Promise<V>): void {
  const { agent, name } = subject

  check('takes the settings of the test', async () => {
    await using vendor = await open()
    expect(await subject.settingProblems(subject.settingsAt(vendor))).toEqual([])
  })

  for (const key of (agent.settings as { required?: string[] }).required ?? []) {
    check(`names the setting ${key} when it is missing`, async () => {
      await using vendor = await open()
      const { [key]: _, ...rest } = subject.settingsAt(vendor)
      const found = await subject.settingProblems(rest)
      expect(found.map(({ path }) => path)).toContain(`agents.${name}.${key}`)
    })
  }

  if (!agent.doctor) return
  check('doctor says that all is well', async () => {
    await using vendor = await open()
    const { expires_at = null, ...found } = await subject.doctor(vendor)
    expect(found).toEqual({ who: found.who, missing: [], text: expect.stringMatching(/\S/) })
    expect(expires_at === null || (Number.isSafeInteger(expires_at) && expires_at > 0)).toBe(true)
    expect(found.who === null || found.who.trim() !== '').toBe(true)
    expect(shownIn(JSON.stringify(found), await subject.secretsOf(subject.settingsAt(vendor)))).toEqual([])
  })

  check('doctor names the setting to set anew, if it asks the vendor at all', async () => {
    await using vendor = await open()
    const settings = subject.settingsAt(vendor)
    const secrets = await subject.secretsOf(settings)
    if (isFake(vendor)) vendor.fail(/./, () => refusal(401, 'said by the vendor'), { times: 99 })
    const error: unknown = await subject.doctor(vendor, withOtherSecrets(settings, secrets) ?? settings).then(
      () => null,
      thrown => thrown,
    )
    const asked = isFake(vendor) ? vendor.seen.length > 0 : secrets.length > 0
    if (!asked) return expect(error).toBeNull()
    expect(error).toBeInstanceOf(AgentError)
    const { code, hint } = error as AgentError
    expect({ code, hint }).toEqual({ code: 'unauthorized', hint: expect.stringContaining(`agents.${name}.`) })
  })
}

/** What a successful call returns: a line for people, and JSON. */
export function results<V extends Vendor>(trial: Trial<V>): void {
  const { effect, open, call, subject, handler } = trial

  check('declares an effect that fits its direction', () => {
    const direction = subject.agent.actions?.[call]?.direction ?? call
    const fitting = { source: ['read', 'idempotent', 'once'], target: ['idempotent', 'once'] }[direction]
    expect(fitting ?? ['read', 'idempotent', 'once']).toContain(effect)
    if (handler.find && typeof handler.effect !== 'function') expect(effect, 'only `once` has a `find`').toBe('once')
  })

  check('gives a line for people and plain JSON', async () => {
    await using vendor = await open()
    const { result, error } = await attempt(trial, vendor)
    if (!result) throw error
    if (isFake(vendor)) expect(timesSent(trial, vendor), `requests that match ${trial.request}`).toBeGreaterThan(0)
    const { text, data, external } = result
    expect(text).toBeString()
    expect(text).toMatch(/\S/)
    expect(text).not.toMatch(/\bundefined\b|\[object \w+\]/)
    expect([notJson(data, 'data'), notJson(external, 'external')]).toEqual([null, null])
    expect(Buffer.byteLength(JSON.stringify(data ?? {}))).toBeLessThanOrEqual(MAX_DATA_BYTES)
    for (const value of Object.values(external ?? {})) expect(value).toMatch(/^(?!undefined$|null$)./)
  })
}

/** No field of an agent accepts such an object. */
const NONSENSE = { nonsense_of_the_test: [null] }

/** What the schema of an entry must refuse, with the path of the problem. */
export function schemas<V extends Vendor>({ subject, call, handler, open, example }: Trial<V>): void {
  const { required = [], properties = {} } = handler.entry as { required?: string[]; properties?: Properties }
  const entryOf = async () => {
    await using vendor = await open()
    return example(vendor).entry
  }
  const pathsOf = (entry: object) => problems(handler.entry, entry).map(({ path }) => path)

  check('takes the entry of the example', async () => {
    expect(problems(handler.entry, await entryOf())).toEqual([])
  })

  check('refuses an unknown field, by its path', async () => {
    expect(pathsOf({ ...(await entryOf()), nonsense_of_the_test: 1 })).toEqual(['/nonsense_of_the_test'])
  })

  if ((subject.agent.actions?.[call]?.direction ?? call) === 'phase') {
    check('leaves to the phase the fields that every phase has, `name` among them', () => {
      expect(fieldsOfPhases().filter(field => field in properties)).toEqual([])
    })
  }

  for (const field of required) {
    check(`refuses an entry without ${field}, by its path`, async () => {
      const { [field]: _, ...rest } = await entryOf()
      expect(pathsOf(rest)).toContain(`/${field}`)
    })
  }

  for (const [field, schema] of Object.entries(properties)) {
    if (takesAnything(schema)) continue
    check(`refuses nonsense as ${field}, by its path`, async () => {
      const paths = pathsOf({ ...(await entryOf()), [field]: NONSENSE })
      expect(paths.filter(path => path === `/${field}` || path.startsWith(`/${field}/`))).not.toEqual([])
    })
  }
}

/** A phase keeps these for itself: an agent that is called with the phase's own fields never sees them. */
function fieldsOfPhases(): string[] {
  const { $defs } = teamJsonSchema({ names: () => [], get: () => undefined }) as { $defs: { phase: TSchema } }
  return Object.keys(($defs.phase as { properties?: object }).properties ?? {})
}

type Properties = Record<string, TSchema>

/** `Type.Unknown()` and `Type.Any()`. */
function takesAnything(schema: TSchema): boolean {
  return problems(schema, NONSENSE).length === 0
}
