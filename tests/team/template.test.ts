import { describe, expect, test } from 'bun:test'
import type { Json } from '../../lib/json.ts'
import type { StandardPhase } from '../../lib/team/model/compiled-team.ts'
import { HEAD, scope, team } from './load.ts'

const INPUTS = 'inputs:\n  - { name: v, type: object }\n'

/** Evaluates `value` as the output of a team. */
async function render(value: string, v: Json = null): Promise<Json> {
  const phases = "phases: [{ name: a, agent: exec, commands: [{ name: c, run: 'true' }] }]\n"
  const compiled = await team(`${HEAD}${INPUTS}${phases}outputs:\n  - name: out\n    value: ${value}\n`)
  const template = compiled.outputs[0]!.value
  return template.constant !== undefined ? template.constant : template.evaluate(scope({ inputs: { v } }))
}

describe('a template alone keeps its type', () => {
  const values: Json[] = [null, true, 1, 2.5, 'x', [1, 'a', null], { a: { b: [] } }]
  test.each(values)('%p', async value => {
    expect(await render('"{{ inputs.v.x }}"', { x: value })).toEqual(value)
    expect(await render('{ deep: ["{{ inputs.v.x }}"] }', { x: value })).toEqual({ deep: [value] })
  })
})

describe('in text', () => {
  const cases: [yaml: string, x: Json, text: Json][] = [
    ['"a {{ inputs.v.x }} b"', 'c', 'a c b'],
    ['"{{ inputs.v.x }} "', 1, '1 '],
    ['"{{ inputs.v.x }}{{ inputs.v.x }}"', 1.5, '1.51.5'],
    ['"<{{ inputs.v.x }}>"', null, '<>'],
    ['"<{{ inputs.v.x }}>"', true, '<true>'],
    ['"<{{ inputs.v.x }}>"', { a: [1, null] }, '<{"a":[1,null]}>'],
    ['"{{{{ x }}"', null, '{{ x }}'],
    ['"{{{{{{ inputs.v.x }}"', 'y', '{{y'],
    ['"}} alone"', null, '}} alone'],
    [`"{{ {'a': {'b': inputs.v.x}} }}"`, 1, { a: { b: 1 } }],
    [`"{{{'a': inputs.v.x}}}"`, 1, { a: 1 }],
    [`"{{ '}}' + inputs.v.x }}"`, 'z', '}}z'],
    [`"{{ '\\\\\\\\' + inputs.v.x }}"`, 'z', '\\z'],
    ['"no template { at all }"', null, 'no template { at all }'],
    ['"{{ inputs.v.x ? 1 : 2 }}"', false, 2],
  ]
  test.each(cases)('%s', async (yaml, x, text) => expect(await render(yaml, { x })).toEqual(text))
})

test('rendered text is not evaluated again', async () => {
  expect(await render('"<{{ inputs.v.x }}>"', { x: '{{ inputs.v }}' })).toBe('<{{ inputs.v }}>')
})

describe('errors at run time name their place', () => {
  const cases: [yaml: string, place: string][] = [
    ['"{{ inputs.v.x.gone }}"', '8:27'],
    ['"a {{ 1 }} {{ inputs.v.x.gone }}"', '8:37'],
    [`'it''s {{ inputs.v.x.gone }}'`, '8:33'],
    ['"\\t\\u00e9 {{ inputs.v.x.gone }}"', '8:36'],
    ['x {{ inputs.v.x.gone }}', '8:28'],
    ['|\n      first\n      b {{ inputs.v.x.gone }}', '10:23'],
    ['>-\n      first\n\n      b {{ inputs.v.x.gone }}', '11:23'],
  ]
  test.each(cases)('%s', async (yaml, place) => {
    await expect(render(yaml, { x: {} })).rejects.toThrow(
      `team.yml:${place}: No such key: gone: \`or(inputs.v.x.gone, '-')\` gives a value instead in \`inputs.v.x.gone\``,
    )
  })
})

describe('ref', () => {
  const refOf = async (ref: string, v: Json = null) => {
    const text = `${HEAD}${INPUTS}phases: [{ name: a, agent: issues, action: search, sources: [{ name: e, ref: ${ref} }] }]`
    const phase = (await team(text)).phases[0] as StandardPhase
    return phase.sources[0]!.entry.evaluate(scope({ inputs: { v } }))
  }
  const written = ['00123', '1e3', '12345678901234567890', '0x1F', '1.0', '-7', '+5', '.5']
  test.each(written)('%s keeps its text', async text => expect(await refOf(text)).toEqual({ name: 'e', ref: text }))

  test('a number from a template becomes text', async () => {
    expect(await refOf('"{{ inputs.v.id }}"', { id: 42 })).toEqual({ name: 'e', ref: '42' })
  })

  test('an input named ref of a sub-team keeps its type', async () => {
    const child = `${HEAD}inputs: [{ name: ref, type: number }]\nphases: [{ name: a, agent: exec, commands: [{ name: c, run: x }] }]`
    const compiled = await team(`${HEAD}phases: [{ name: a, type: team, team: ./c, inputs: { ref: 5 } }]`, {
      'c/team.yml': child,
    })
    expect(compiled.phases[0]).toMatchObject({ inputs: { constant: { ref: 5 } } })
  })
})
