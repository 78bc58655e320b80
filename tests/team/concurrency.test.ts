// `concurrency` of a team: the number of phases, and the key that its runs hold.

import { expect, test } from 'bun:test'
import { type FileMap, keyFrom, loadBundle } from '../../lib/team/team.ts'
import { lookup } from './agents.ts'

const load = (head: string) => {
  const text = `name: "@local/deploy"
version: 1.0.0
inputs:
  - { name: env, type: string }
  - { name: nr, type: number }
  - { name: tags, type: list }
  - { name: password, type: string, secret: true }
${head}
phases:
  - { name: ship, agent: exec, commands: [{ name: x, run: "true" }] }
`
  const files: FileMap = new Map([['team.yml', text]])
  return loadBundle(files, { agents: lookup }).then(bundle => bundle.team(bundle.root))
}

const problems = (head: string): Promise<string[]> =>
  load(head).then(
    () => [],
    error => error.details.map(({ message }: { message: string }) => message.replace(/^team\.yml:8:\d+: /, '')),
  )

test('a number is how many phases run at once, and such a team has no key', async () => {
  expect(await load('concurrency: 3')).toMatchObject({ concurrency: 3, key: null })
  expect(await load('')).toMatchObject({ concurrency: null, key: null })
})

test('a key has a limit of 1 and waits, unless the team says something else', async () => {
  const { concurrency, key } = await load('concurrency: { key: "deploy-{{ inputs.env }}" }')
  expect(concurrency).toBeNull()
  expect(key).toMatchObject({ source: 'deploy-{{ inputs.env }}', limit: 1, whenFull: 'queue' })
  expect(key!.of({ env: 'prod' }, null)).toBe('deploy-prod')
  const other = await load('concurrency: { key: x, limit: 4, when_full: cancel_oldest, phases: 8 }')
  expect(other).toMatchObject({ concurrency: 8, key: { source: 'x', limit: 4, whenFull: 'cancel_oldest' } })
  expect(other.key!.of({}, null)).toBe('x')
})

test('a template alone may give a number, and a key must be short text', async () => {
  const { key } = await load('concurrency: { key: "{{ inputs.nr }}" }')
  expect(key!.of({ nr: 7 }, null)).toBe('7')
  const must = (what: string) =>
    `the key of \`concurrency\` must be text of 1 to 200 characters, but with these inputs it ${what}`
  const env = (await load('concurrency: { key: "{{ inputs.env }}" }')).key!
  expect(() => env.of({ env: '' }, null)).toThrow(must('is empty'))
  expect(() => env.of({ env: 'x'.repeat(201) }, null)).toThrow(must('is longer'))
  expect(() => env.of({}, null)).toThrow(must('is not text'))
  const tags = (await load('concurrency: { key: "{{ inputs.tags }}" }')).key!
  expect(() => tags.of({ tags: ['a'] }, null)).toThrow(must('is not text'))
})

test('what is known only later cannot be named, and neither can a secret', async () => {
  const only = 'a key is needed before the run begins, so it can name only `inputs` and `run.environment`'
  expect(await problems('concurrency: { key: "{{ phases.ship.data }}" }')).toEqual([only])
  expect(await problems('concurrency: { key: "{{ run.id }}" }')).toEqual([only])
  expect(await problems('concurrency: { key: "{{ secrets.token }}" }')).toEqual([only])
  expect(await problems('concurrency: { key: "{{ inputs.evn }}" }')).toEqual([
    'no input `evn` (did you mean `env`?) is declared',
  ])
  const secret = 'input `password` is secret, and everybody who sees the run sees its key'
  expect(await problems('concurrency: { key: "a-{{ inputs.password }}" }')).toEqual([secret])
  expect(await problems('concurrency: { key: "{{ toJson(inputs) }}" }')).toEqual([secret])
})

test('a key may name the environment, which is null for the plain settings', async () => {
  const { key } = await load('concurrency: { key: "deploy-{{ run.environment }}" }')
  expect(key!.of({}, 'staging')).toBe('deploy-staging')
  expect(key!.of({}, null)).toBe('deploy-')
  const alone = (await load('concurrency: { key: "{{ run.environment }}" }')).key!
  expect(() => alone.of({}, null)).toThrow('it is not text')
})

test('mistakes say what is expected', async () => {
  const either = 'expected a whole number from 1 to 10000, or a mapping with a `key`'
  expect(await problems('concurrency: 0')).toEqual([`${either}, not the number 0`])
  expect(await problems('concurrency: many')).toEqual([`${either}, not the text "many"`])
  expect(await problems('concurrency: { limit: 2 }')).toEqual(['`key` is missing'])
  expect(await problems('concurrency: { key: a, limit: 0, when_full: wait }')).toEqual([
    'expected a whole number from 1 to 10000, not the number 0',
    'expected one of queue, skip, cancel_oldest, not the text "wait"',
  ])
  expect(await problems('concurrency: { key: a, limits: 2 }')).toEqual([
    'unknown field `limits` (did you mean `limit`?)',
  ])
})

test('a hub reads the key of a package from what was stored with it', () => {
  const key = keyFrom({ key: 'deploy-{{ inputs.env }}', limit: 2, when_full: 'skip' }, ['env'])
  expect(key).toMatchObject({ limit: 2, whenFull: 'skip' })
  expect(key.of({ env: 'prod' }, null)).toBe('deploy-prod')
  const inPlace = keyFrom({ key: 'deploy-{{ run.environment }}', limit: 1, when_full: 'queue' }, [])
  expect(inPlace.of({}, 'staging')).toBe('deploy-staging')
  expect(() => keyFrom({ key: '{{ inputs.gone }}', limit: 1, when_full: 'queue' }, ['env'])).toThrow('no input `gone`')
})
