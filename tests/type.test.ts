// Our `Type` against TypeBox's own: what both build is the same in every property, hidden marks included.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Type as TypeBox } from 'typebox'
import { Type } from '../lib/schema/type.ts'
import { folder } from './support/folder.ts'

type Builders = typeof TypeBox
const REPOSITORY = join(import.meta.dir, '..')

/** Every property with what describes it, at any depth; hidden ones, whose order nobody sees, come last. */
function bare(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const described = Object.entries(Object.getOwnPropertyDescriptors(value))
  described.sort(([, a], [, b]) => Number(b.enumerable) - Number(a.enumerable))
  return described.map(([name, { value: inner, ...rest }]) => [name, rest, bare(inner)])
}

const built: Record<string, (T: Builders) => object> = {
  any: T => T.Any({ description: 'a' }),
  array: T => T.Array(T.String(), { minItems: 1 }),
  boolean: T => T.Boolean({ default: true }),
  enum: T => T.Enum(['a', 'b'], { description: 'a' }),
  'enum of an object': T => T.Enum({ A: 'a', B: 'b' }),
  integer: T => T.Integer({ minimum: 1 }),
  'literal of a string': T => T.Literal('a', { description: 'a' }),
  'literal of a number': T => T.Literal(1),
  'literal of a boolean': T => T.Literal(false),
  null: T => T.Null(),
  number: T => T.Number({ maximum: 1.5 }),
  object: T => T.Object({ a: T.String(), b: T.Optional(T.Integer()) }, { additionalProperties: false, $id: 'x' }),
  'object of nothing': T => T.Object({}),
  'object of optional fields': T => T.Object({ a: T.Optional(T.Null()) }),
  optional: T => T.Optional(T.Union([T.Optional(T.String()), T.Null()], { description: 'a' })),
  'optional twice': T => T.Optional(T.Optional(T.Any())),
  record: T => T.Record(T.String({ minLength: 1 }), T.Any(), { 'x-expected': 'a mapping' }),
  'record of a pattern': T => T.Record(T.String({ pattern: '^[a-z]+$' }), T.Number()),
  'record of a union': T => T.Record(T.Union([T.Literal('a'), T.Literal('b')]), T.Number()),
  pick: T => T.Pick(T.Object({ a: T.String(), b: T.Optional(T.Null()), c: T.Any() }, { $id: 'x' }), ['c', 'b']),
  'pick of a union of names': T => T.Pick(T.Object({ a: T.String() }), T.Union([T.Literal('a')])),
  string: T => T.String({ minLength: 1, pattern: '^a' }),
  union: T => T.Union([T.String(), T.Object({ a: T.Null() })], { description: 'a' }),
  unknown: T => T.Unknown({ description: 'a' }),
  unsafe: T => T.Unsafe(T.Optional(T.Record(T.String(), T.Unknown()))),
  'unsafe of plain JSON': T => T.Unsafe({ type: 'string', format: 'x' }),
  'members that TypeBox lends': T => T.Omit(T.Partial(T.Object({ a: T.String(), b: T.Null() })), ['a']),
}

describe('builds what TypeBox builds', () => {
  test.each(Object.keys(built))('%s', name => {
    expect(bare(built[name]!(Type))).toEqual(bare(built[name]!(TypeBox)))
  })
})

test('TypeBox knows our schemas, and we know its', () => {
  const ours = Type.Object({ a: Type.Optional(Type.String()) })
  expect(TypeBox.IsObject(ours)).toBe(true)
  expect(TypeBox.IsOptional(ours.properties.a)).toBe(true)
  for (const value of [TypeBox.Object({}), TypeBox.String(), {}, null, 'Object']) {
    expect(Type.IsObject(value)).toBe(TypeBox.IsObject(value))
  }
})

/** The modules of TypeBox's type engine that this program loads. */
function engineOf(program: string): string[] {
  const loaded = `Object.keys(require.cache).filter(file => file.includes('/typebox/build/type/'))`
  const whole = `${program}\nconsole.log(JSON.stringify(${loaded}))`
  const { stdout, stderr } = Bun.spawnSync([process.execPath, '-e', whole], { cwd: REPOSITORY })
  expect(stderr.toString()).toBe('')
  return JSON.parse(stdout.toString())
}

test("a hub starts without TypeBox's type engine", () => {
  const home = folder()
  const program = `
    const { openStore } = await import('./db/hub/open-store.ts')
    const { createLog } = await import('./lib/log/log.ts')
    const { createHub } = await import('./lib/hub/serve.ts')
    const { hubApp } = await import('./hub.ts')
    const hub = createHub({ store: await openStore(${JSON.stringify(join(home, 'hub.db'))}), log: createLog({ write: () => {} }), home: '' })
    hubApp(hub)
    await hub.close()`
  expect(engineOf(program)).toEqual([])
})

test("a daemon, its agents and a team start without TypeBox's type engine", () => {
  const program = `
    await import('./lib/daemon/cli/machine/serve.ts')
    const { discover } = await import('./lib/agent/catalogue.ts')
    const agents = await discover({ home: '/nowhere' })
    const { loadBundle } = await import('./lib/team/team.ts')
    const team = 'name: "@local/t"\\nversion: 1.0.0\\nphases: [{ name: a, agent: exec, commands: [{ name: c, run: "true" }] }]\\n'
    await loadBundle(new Map([['team.yml', team]]), { agents })`
  expect(engineOf(program)).toEqual([])
})
