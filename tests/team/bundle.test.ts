import { beforeAll, describe, expect, test } from 'bun:test'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { CadreError } from '../../lib/error.ts'
import { bundleFromJson, loadBundle, type TeamPackage } from '../../lib/team/compile/bundle.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { agentRefs, literalOrigins, teamsOf } from '../../lib/team/model/team-needs.ts'
import { folder } from '../support/folder.ts'
import { lookup } from './agents.ts'
import { HEAD, load, problems, scope, team } from './load.ts'

const EXEC = "agent: exec, commands: [{ name: c, run: 'true' }]"
const leaf = (inputs = '') => `${HEAD}${inputs && `inputs: [${inputs}]\n`}phases:\n  - { name: a, ${EXEC} }\n`
const caller = (ref: string, inputs = '{}') =>
  `${HEAD}phases:\n  - { name: a, type: team, team: "${ref}", inputs: ${inputs} }\n`

const root = folder()

beforeAll(async () => {
  const files: Record<string, string> = {
    'main/team.yml': caller('./sub'),
    'main/sub/team.yml': caller('../../beside'),
    'main/other.yml': leaf(),
    'beside/team.yml': leaf(),
    'linked/team.yml': caller('./out'),
    'bytes/team.yml': '',
    'misnamed/team.yaml': leaf(),
    'calls/team.yml': caller('./below'),
    'calls/below/team.yaml': leaf(),
  }
  for (const [path, text] of Object.entries(files)) await Bun.write(join(root, path), text)
  await Bun.write(join(root, 'bytes/team.yml'), new Uint8Array([0xff, 0xfe, 0x00]))
  await symlink(join(root, 'beside'), join(root, 'linked/out'))
  await mkdir(join(root, 'empty'))
})

describe('on disk', () => {
  test('folders in the package and beside it', async () => {
    const bundle = await loadBundle(join(root, 'main'), { agents: lookup })
    expect(teamsOf(bundle).map(([key]) => key)).toEqual(['.', 'sub', '../beside'])
    expect(bundle.folder('.')).toBe(join(root, 'main'))
    expect(bundle.folder('../beside')).toBe(join(root, 'beside'))
    expect(bundle.team('sub').phases[0]).toMatchObject({ type: 'team', team: '../beside' })
  })

  test('a file by name', async () => {
    const bundle = await loadBundle(join(root, 'main/other.yml'), { agents: lookup })
    expect(bundle.json().teams['.']!.file).toBe('other.yml')
  })

  test('closed: nothing outside is read, not even through a link', async () => {
    const load = (name: string) => loadBundle(join(root, name), { agents: lookup, closed: true }).catch(problemsOf)
    expect(await load('main')).toMatchObject([
      { file: 'sub/team.yml', message: 'this path must stay inside the package' },
    ])
    expect(await load('linked')).toMatchObject([{ message: 'there is no team.yml in out' }])
  })

  test('team.yaml is named where team.yml is missing', async () => {
    const load = (name: string) => loadBundle(join(root, name), { agents: lookup }).catch((caught: Error) => caught)
    const wrong = `there is no team.yml in ${join(root, 'misnamed')}: rename its team.yaml`
    expect(await load('misnamed')).toMatchObject({ code: 'invalid_request', message: wrong })
    expect(problemsOf(await load('calls'))).toMatchObject([
      { message: 'there is no team.yml in below: rename its team.yaml' },
    ])
  })

  test.each(['empty', 'missing', 'bytes'])('%s is refused', async name => {
    const error = await loadBundle(join(root, name), { agents: lookup }).catch(caught => caught)
    expect(error).toBeInstanceOf(CadreError)
    expect(error.code).toBe('invalid_request')
  })
})

describe('stored', () => {
  test('a bundle outlives its files', async () => {
    const home = join(root, 'gone')
    await Bun.write(join(home, 'team.yml'), caller('./sub', '{ x: "{{ run.id }}" }'))
    await Bun.write(join(home, 'sub/team.yml'), leaf('{ name: x }'))
    const bundle = await loadBundle(home, { agents: lookup })
    const text = JSON.stringify(bundle.json())
    await rm(home, { recursive: true })
    const restored = bundleFromJson(JSON.parse(text))
    expect(restored.id).toBe(bundle.id)
    expect(restored.id).toMatch(/^[0-9a-f]{64}$/)
    const phase = restored.team('.').phases[0]!
    expect(phase.type === 'team' && phase.inputs.evaluate(scope())).toEqual({ x: 'r1' })
    expect(restored.team('sub').name).toBe('@local/test')
    expect(restored.team('sub')).toBe(restored.team('sub'))
  })

  test('the id follows the content', async () => {
    const [one, same, other] = await Promise.all([load(leaf()), load(leaf()), load(`${leaf()}# x\n`)])
    expect(one.id).toBe(same.id)
    expect(one.id).not.toBe(other.id)
  })
})

describe('packages', () => {
  const named = (name: string, version: string, ref: string) =>
    caller(ref).replace(HEAD, `name: "${name}"\nversion: ${version}\n`)
  const packages: Record<string, TeamPackage> = {
    '@x/y@^1': {
      name: '@x/y',
      version: '1.2.0',
      files: new Map([
        ['team.yml', named('@x/y', '1.2.0', './in')],
        ['in/team.yml', caller('@x/z')],
      ]),
    },
    '@x/z': { name: '@x/z', version: '2.0.0', files: new Map([['team.yml', named('@x/z', '2.0.0', '@x/z')]]) },
    '@x/out': {
      name: '@x/out',
      version: '1.0.0',
      files: new Map([['team.yml', named('@x/out', '1.0.0', '../../etc')]]),
    },
    '@x/posed': { name: '@x/posed', version: '1.0.0', files: new Map([['team.yml', named('@y/z', '1.0.0', '@x/z')]]) },
  }
  const asked: string[] = []
  const resolve = async (ref: string) => {
    asked.push(ref)
    if (ref === '@x/broken') throw new Error('the hub cannot be reached')
    return packages[ref] ?? null
  }
  const from = (ref: string) => loadBundle(new Map([['team.yml', caller(ref)]]), { agents: lookup, resolve })

  test('are resolved once, with their folders', async () => {
    const bundle = await from('@x/y@^1')
    expect(teamsOf(bundle).map(([key]) => key)).toEqual(['.', '@x/y@1.2.0', '@x/y@1.2.0/in', '@x/z@2.0.0'])
    expect(bundle.folder('@x/z@2.0.0')).toBeNull()
    expect(asked).toEqual(['@x/y@^1', '@x/z'])
    const installed = async () => ({ name: '@x/w', version: '1.0.0', folder: join(root, 'installed') })
    await Bun.write(join(root, 'installed/team.yml'), named('@x/w', '1.0.0', '@x/w'))
    const team = await loadBundle(new Map([['team.yml', caller('@x/w')]]), { agents: lookup, resolve: installed })
    expect(team.folder('@x/w@1.0.0')).toBeNull()
    expect(bundle.team('@x/y@1.2.0/in').phases[0]).toMatchObject({ team: '@x/z@2.0.0' })
  })

  test('errors are reported where the package is named', async () => {
    expect(await from('@x/broken').catch(problemsOf)).toMatchObject([
      { line: 4, column: 34, message: '@x/broken: the hub cannot be reached', isUnread: true },
    ])
    const unknown = await from('@x/nowhere').catch(problemsOf)
    expect(unknown).toMatchObject([{ message: 'there is no package @x/nowhere here' }])
    expect(unknown).not.toMatchObject([{ isUnread: true }])
    expect(await from('@x/out').catch(problemsOf)).toMatchObject([
      { file: '@x/out@1.0.0/team.yml', message: 'this path must stay inside the package' },
    ])
  })

  test('say what they are in their root, and no folder is called like one', async () => {
    for (const given of [caller('@x/posed'), packages['@x/posed']!]) {
      const load = typeof given === 'string' ? new Map([['team.yml', given]]) : given
      expect(await loadBundle(load, { agents: lookup, resolve }).catch(problemsOf)).toMatchObject([
        { message: 'the package is @x/posed@1.0.0, and this says @y/z@1.0.0' },
      ])
    }
    const files = new Map([
      ['team.yml', caller('./@x/z@2.0.0')],
      ['@x/z@2.0.0/team.yml', caller('@x/z')],
    ])
    expect(await loadBundle(files, { agents: lookup, resolve }).catch(problemsOf)).toMatchObject([
      { message: 'a folder must not have the name of a version of a package' },
    ])
  })

  test('tell to which package each team belongs', async () => {
    const bundle = await loadBundle(packages['@x/y@^1']!, { agents: lookup, resolve })
    const places = teamsOf(bundle).map(([key]) => bundle.package(key))
    expect(places).toEqual([
      { name: '@x/y', version: '1.2.0', folder: '.' },
      { name: '@x/y', version: '1.2.0', folder: 'in' },
      { name: '@x/z', version: '2.0.0', folder: '.' },
    ])
    expect((await loadBundle(join(root, 'main'), { agents: lookup, resolve })).package('.')).toBeNull()
  })

  test('a package as the root', async () => {
    const bundle = await loadBundle(packages['@x/z']!, { agents: lookup, resolve })
    expect(teamsOf(bundle).map(([key]) => key)).toEqual(['.', '@x/z@2.0.0'])
    expect(bundle.folder('.')).toBeNull()
  })
})

test('a team may call itself', async () => {
  expect((await load(caller('.'))).team('.').phases[0]).toMatchObject({ team: '.' })
  const bundle = await load(caller('./b'), { 'b/team.yml': caller('..') })
  expect(bundle.team('b').phases[0]).toMatchObject({ team: '.' })
})

describe('what is passed to a sub-team', () => {
  const child = leaf('{ name: s, required: true }, { name: n, type: number }, { name: t, secret: true }')
  const cases: [inputs: string, problems: string[]][] = [
    ['{ s: a, n: 1, t: x }', []],
    ['{ s: "{{ run.id }}", n: "{{ run.started_at }}" }', []],
    ['{ s: a, n: null }', []],
    ['{}', ['6:47 input `s` of @local/test is required']],
    ['{ s: 5 }', ['6:52 input `s` of @local/test: expected text, not a number']],
    ['{ s: a, nn: 5 }', ['6:55 @local/test has no input `nn` (did you mean `n`?)']],
    ['{ s: a, t: "{{ inputs.key }}" }', []],
    [
      '{ s: "a{{ inputs.key }}" }',
      ['6:64 `key` is secret, and input `s` of @local/test is not: mark it `secret: true` there'],
    ],
    [
      '{ s: "{{ inputs }}" }',
      [
        '6:56 input `s` of @local/test: expected text, but `inputs` gives an object: write `{{ toJson(inputs) }}`',
        '6:56 `key` is secret, and input `s` of @local/test is not: mark it `secret: true` there',
      ],
    ],
  ]
  test.each(cases)('%s', async (inputs, expected) => {
    const text = `${HEAD}inputs:\n  - { name: key, secret: true }\nphases:\n  - { name: a, type: team, team: ./c, inputs: ${inputs} }\n`
    expect(await problems(text, { 'c/team.yml': child })).toEqual(expected)
  })
})

test('folders nest as deep as runs do', async () => {
  const levels = 1_100
  const folders = Array.from({ length: levels }, (_, at) => [`${'b/'.repeat(at + 1)}team.yml`, caller('./b')] as const)
  const others = { ...Object.fromEntries(folders), [`${'b/'.repeat(levels + 1)}team.yml`]: leaf() }
  const bundle = await load(caller('./b'), others)
  expect(teamsOf(bundle)).toHaveLength(levels + 2)
})

describe('a bundle that was stored before a rule came', () => {
  const restore = (text: string) =>
    bundleFromJson({ root: '.', teams: { '.': { file: 'team.yml', folder: null, text, refs: { './c': 'c' } } } }).team(
      '.',
    )

  test('is restored as it was', () => {
    const phases = restore(`${HEAD}phases:
  - { name: a, type: team, team: ./c, retry: { attempts: 2 } }
  - { name: b, type: gate, review: { prompt: x }, timeout: 5m }
  - { name: c, agent: exec, retry: { attempts: 2 }, commands: [{ name: c, run: x, effect: once }] }
`).phases
    expect(phases.map(({ name, type }) => [name, type])).toEqual([
      ['a', 'team'],
      ['b', 'gate'],
      ['c', 'standard'],
    ])
    expect(phases[0]).toMatchObject({ team: 'c', retry: { attempts: 2 } })
  })

  test('an expression that is no longer valid fails where it is evaluated', () => {
    const { outputs } = restore(`${HEAD}phases: [{ name: a, ${EXEC} }]
outputs: [{ name: o, value: "{{ bytes('a').hex() }}" }]
`)
    expect(() => outputs[0]!.value.evaluate(scope())).toThrow('team.yml:4:44: there is no function `hex`')
  })

  test('a text that is not YAML is not restored', () => expect(() => restore('a: [')).toThrow('team.yml has'))
})

test('problems of all files are reported together', async () => {
  const found = await problems(`${caller('./c')}x: 1\n`, { 'c/team.yml': `${leaf()}y: 1\n` })
  expect(found).toEqual([
    'c/team.yml:5:1 unknown field `y`: there are name, version, description, inputs, outputs, concurrency, requires, environments, timeout, triggers and phases',
    '5:1 unknown field `x`: there are name, version, description, inputs, outputs, concurrency, requires, environments, timeout, triggers and phases',
  ])
})

test('details begin with the place, and carry the path', async () => {
  const error: CadreError = await load(`${leaf()}x: 1\n`).then(
    () => expect.unreachable(),
    caught => caught,
  )
  expect(error.code).toBe('invalid_request')
  expect(error.details).toHaveLength(1)
  expect(error.details![0]!.path).toBe('/x')
  expect(error.details![0]!.message).toStartWith('team.yml:5:1: unknown field `x`')
  expect(problemsOf(error)).toMatchObject([{ line: 5, quote: 'x: 1' }])
})

test('the agents and addresses that a team needs', async () => {
  const compiled = await team(`${HEAD}phases:
  - { name: a, agent: issues@eu, action: search, sources: [{ name: e, ref: x }] }
  - { name: b, agent: http, sources: [
      { name: e, url: "http://127.0.0.1:9000/x/{{ run.id }}" }, { name: f, url: "http://{{ run.id }}.test/" },
      { name: g, url: "https://a.test{{ run.id }}/" }, { name: h, url: "https://b.test?q={{ run.id }}" }] }
  - { name: p, agent: chat, url: "https://c.test/hook" }
  - { name: l, agent: chat, notify: [on_fail] }
`)
  expect(agentRefs(compiled)).toEqual(['issues@eu', 'http', 'chat'])
  expect([...literalOrigins(compiled)]).toEqual(['http://127.0.0.1:9000', 'https://b.test', 'https://c.test'])
})
