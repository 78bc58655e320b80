import { describe, expect, test } from 'bun:test'
import type { Json } from '../../lib/json.ts'
import type { PhaseValue, Scope } from '../../lib/team/model/compiled-team.ts'
import { HEAD, scope, team } from './load.ts'

const ended = (state: string, value: Partial<PhaseValue> = {}): PhaseValue => ({
  state,
  reason: null,
  text: '',
  data: null,
  files: [],
  error: null,
  ...value,
})

const PHASES: Record<string, PhaseValue> = {
  done: ended('completed', { text: 'ok', data: { total: 3, none: null } }),
  skipped: ended('skipped', { reason: 'when' }),
  failed: ended('failed', { error: { code: 'timeout', message: 'took too long' } }),
  stopped: ended('failed', { data: { total: 2 } }),
  list: ended('completed', { text: '0 of 1 items', data: { items: [{ outputs: {} }] } }),
  one: ended('completed', { files: [{ name: 'a', path: 'files/one/a', bytes: 1, sha256: '' }] }),
}

const EXEC = 'agent: exec, commands: [{ name: c, run: x }]'
const LINES = `inputs: [{ name: given }, { name: absent }, { name: doc, type: file }]
phases:
  - { name: done, ${EXEC} }
  - { name: skipped, ${EXEC} }
  - { name: failed, ${EXEC} }
  - { name: stopped, ${EXEC} }
  - { name: one, ${EXEC} }
  - { name: list, ${EXEC} }
`
const given: Partial<Scope> = {
  inputs: { given: 'x', doc: 'files/a/b.md' },
  run: { id: 'r1', name: null, started_at: 1_700_000_000_000, environment: null },
  phase: name => PHASES[name]!,
  secret: name => `secret of ${name}`,
  file: path => `/state/${path}`,
}

/** Evaluates the output `value`. */
async function output(value: string): Promise<Json> {
  const compiled = await team(`${HEAD}${LINES}outputs: [{ name: o, value: ${JSON.stringify(value)} }]\n`)
  return compiled.outputs[0]!.value.evaluate(scope(given))
}

describe('of a phase that did not complete', () => {
  const cases: [value: string, result: Json][] = [
    ['{{ phases.skipped.data }}', null],
    ['{{ phases.skipped.data.total }}', null],
    ['{{ phases.skipped.data.deep.down }}', null],
    ["{{ phases['failed'].data['total'] }}", null],
    ['{{ phases.skipped.data.items[0].id }}', null],
    ['{{ phases.skipped.data.items.map(i, i.id) }}', null],
    ['{{ phases.skipped.data.total + 1 }}', null],
    ['{{ phases.skipped.files[0].path }}', null],
    ['{{ phases.skipped.data.total == null }}', true],
    ['{{ phases.skipped.data.?total.orValue(0) }}', 0],
    ['{{ has(phases.skipped.data.total) }}', false],
    ["{{ phases.skipped.state == 'completed' && phases.skipped.data.total > 1 }}", false],
    ['{{ phases.stopped.data.total }}', 2],
    ['{{ phases.done.data.total }}', 3],
    ['{{ [phases.done.data.total, phases.skipped.data.total] }}', [3, null]],
    ['total: {{ phases.skipped.data.total }} of {{ phases.done.data.total }}', 'total:  of 3'],
    ['{{ phases.failed.error }}', { code: 'timeout', message: 'took too long' }],
    ['{{ phases.failed.error.code }}', 'timeout'],
    ['{{ phases.done.error }}', null],
    ['{{ phases.done.error.message }}', null],
    ['{{ phases.done.?error.?message.orValue("fine") }}', 'fine'],
    ['{{ phases.done.data.?gone }}', null],
    ['{{ or(phases.skipped.data.total + 1, 0) + phases.done.data.total }}', 3],
    ['{{ or(phases.skipped.data.items.map(i, i.id), []) }}', []],
    ["{{ or(phases.failed.error.code, '-') + or(phases.done.error.code, '-') }}", 'timeout-'],
    ['{{ inputs.absent }}', null],
    ['{{ inputs.?absent.orValue("else") }}', 'else'],
    ['{{ has(inputs.absent) || !has(inputs.given) }}', false],
    ['{{ run.started_at }}', 1_700_000_000_000],
  ]
  test.each(cases)('%s is %j', async (value, result) => expect(await output(value)).toEqual(result))
})

test('a value that is missing in a completed phase is an error', async () => {
  await expect(output('{{ phases.done.data.gone }}')).rejects.toThrow('No such key: gone')
  await expect(output('{{ phases.done.data.none.deep }}')).rejects.toThrow('No such key: deep')
  await expect(output('{{ phases.skipped.data.total }}{{ phases.done.data.gone }}')).rejects.toThrow(
    'No such key: gone',
  )
})

describe('and the error says what the phase gave, and what it said', () => {
  const cases: [value: string, says: string][] = [
    [
      '{{ phases.done.data.gone }}',
      'No such key: gone (did you mean `none`?): data of phase done has total, none (ok) in `',
    ],
    [
      "{{ phases['done'].data['totl'] }}",
      'No such key: totl (did you mean `total`?): data of phase done has total, none (ok) in `',
    ],
    [
      '{{ phases.done.data.none.deep }}',
      "No such key: deep: data.none of phase done is null (ok): `or(phases.done.data.none.deep, '-')` gives a value instead in `",
    ],
    ['{{ phases.done.data.?gone.orValue(0) + phases.done.data.gone }}', 'data of phase done has total, none (ok) in `'],
    [
      '{{ phases.list.data.items.map(i, i.outputs.id) }}',
      "No such key: id: phase list said (0 of 1 items): `or(i.outputs.id, '-')` gives a value instead in `",
    ],
    ['{{ phases.done.files[0].path }}', ': phase done has no files in `'],
    ['{{ phases.one.files[3].path }}', ': phase one has only 1 in `'],
    [
      '{{ phases.done.data.total > 1 ? [][2] : 0 }}',
      "index out of bounds, index 2 >= size undefined: `or([][2], '-')` gives a value instead in `",
    ],
  ]
  test.each(cases)('%s', async (value, says) => {
    await expect(output(value)).rejects.toThrow(says)
  })
})

describe('when', () => {
  const when = async (text: string) => {
    const more = `  - { name: last, depends_on: [done, skipped], when: ${JSON.stringify(text)}, ${EXEC} }\n`
    return (await team(`${HEAD}${LINES}${more}`)).phases.at(-1)!.when!.evaluate(scope(given))
  }

  test('may name what is missing', async () => {
    expect(await when("phases.skipped.state == 'skipped' || phases.skipped.data.total > 1")).toBe(true)
    expect(await when('phases.skipped.data.total == null')).toBe(true)
    expect(await when('phases.skipped.data.?ok.orValue(false)')).toBe(false)
  })

  test('must give a bool all the same', async () => {
    await expect(when('phases.skipped.data.ok')).rejects.toThrow(
      'team.yml:11:55: `when` must give a bool, but this gave null',
    )
    await expect(when('phases.skipped.data.total > 1')).rejects.toThrow(
      '`when` must give a bool, but this gave null: `or(phases.skipped.data.total > 1, false)` gives a value instead',
    )
    expect(await when('or(phases.skipped.data.total > 1, false)')).toBe(false)
    await expect(when('phases.done.data.total')).rejects.toThrow('`when` must give a bool, but this gave 3')
  })
})

describe('in the environment of a command', () => {
  const environment = async (kind: string, value: string) => {
    const command = `{ name: c, run: x, env: { A: ${JSON.stringify(value)} } }`
    const text = `${HEAD}${LINES}  - { name: last, depends_on: [done], ${kind}, env: { B: ${JSON.stringify(value)} }, commands: [${command}] }\n`
    const phase = (await team(text)).phases.at(-1)!
    if (phase.type === 'gate') return [phase.env.evaluate(scope(given)), phase.commands[0]!.env.evaluate(scope(given))]
    const fields = phase.type === 'standard' && phase.fields.evaluate(scope(given))
    return fields
  }

  test.each([
    ['{{ inputs.doc }}', '/state/files/a/b.md'],
    ['{{ inputs.doc + ".bak" }}', '/state/files/a/b.md.bak'],
    ["{{ file('files/done/x') }}", '/state/files/done/x'],
    ['{{ secrets.token }}', 'secret of token'],
    ['Bearer {{ secrets["my-token"] }}', 'Bearer secret of my-token'],
  ])('%s', async (value, result) => {
    expect(await environment('type: gate', value)).toEqual([{ B: result }, { A: result }])
    expect(await environment('agent: exec', value)).toMatchObject({
      env: { B: result },
      commands: [{ env: { A: result } }],
    })
  })

  test('elsewhere a file keeps its path', async () => expect(await output('{{ inputs.doc }}')).toBe('files/a/b.md'))

  test('a value that the scope lacks is an error', async () => {
    const text = `${HEAD}phases: [{ name: a, agent: http, sources: [{ name: e, url: "{{ secrets.x }}" }] }]`
    const phase = (await team(text)).phases[0]!
    const entry = phase.type === 'standard' ? phase.sources[0]!.entry : null
    expect(() => entry!.evaluate(scope())).toThrow('team.yml:3:64: secrets are not available here')
    const secret = (name: string) => {
      throw new Error(`there is no secret ${name}`)
    }
    expect(() => entry!.evaluate(scope({ secret }))).toThrow('team.yml:3:64: there is no secret x in `secrets.x`')
  })
})
