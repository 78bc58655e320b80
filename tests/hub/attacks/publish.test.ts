// Attacks by publishing: packages that take long to check, packages for a scope of others, names that daemons refuse.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { PackageChecker } from '../../../lib/hub/packages/packages.ts'
import { AGAIN, startTestHub, type TestHub } from '../../support/hub.ts'

let hub: TestHub

beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

const file = (path: string, text: string) => ({ path, content_base64: Buffer.from(text).toString('base64') })

const leaf = (name: string, version = '1.0.0', phases = 1) =>
  `name: "${name}"\nversion: ${version}\nphases:\n${Array.from(
    { length: phases },
    (_, n) =>
      `  - { name: p${n}, agent: exec, when: "'${n}' + string(${n}) != 'x'", commands: [{ name: c, env: { A: "{{ run.id + '${n}' }}" }, run: echo }] }\n`,
  ).join('')}`

/** A team with 100 others below it, which takes several seconds to check. */
function heavy(name: string, phases = 100) {
  const subs = Array.from({ length: 100 }, (_, n) => n)
  const calls = subs.map(n => `  - { name: s${n}, type: team, team: ./t${n} }\n`).join('')
  return [
    file('team.yml', `name: "${name}"\nversion: 1.0.0\nphases:\n${calls}`),
    ...subs.map(n => file(`t${n}/team.yml`, leaf(`@admin/t${n}`, '1.0.0', phases))),
  ]
}

/** 250 ms are promised; a test leaves room for a busy machine. Checked on the main thread, heavy() takes seconds. */
const PROMPT_MS = 1_000

// About the thread that checks, which reads no table.
test.skipIf(AGAIN)(
  'other calls are answered while a heavy package is checked',
  async () => {
    await hub.ok(hub.admin, 'teams/publish', { files: [file('team.yml', leaf('@admin/first'))] })
    let done = false
    const published = hub
      .call(hub.admin, 'teams/publish', { files: heavy('@admin/heavy') })
      .finally(() => (done = true))
    let slowest = 0
    let asked = 0
    while (!done) {
      const start = performance.now()
      expect((await fetch(`${hub.url}/health`)).status).toBe(200)
      slowest = Math.max(slowest, performance.now() - start)
      asked++
      await Bun.sleep(10)
    }
    expect((await published).status).toBe(200)
    expect(asked).toBeGreaterThan(10)
    expect(slowest).toBeLessThan(PROMPT_MS)
  },
  120_000,
)

test('whoever may not publish in a scope has nothing checked', async () => {
  const eve = await hub.account('eve')
  // It would be refused with its problems, if anybody looked.
  const broken = 'name: "@admin/x"\nversion: none\nphases: 1\n'
  const scopeless = 'version: none\nphases: 1\n'
  const member = await hub.call(hub.admin, 'teams/publish', { files: [file('team.yml', broken)] })
  expect([member.status, member.error.details!.length > 0]).toEqual([400, true])
  expect((await hub.call(eve.token, 'teams/publish', { files: [file('team.yml', broken)] })).status).toBe(404)
  expect((await hub.call(eve.token, 'teams/publish', { scope: 'admin', files: heavy('@local/x') })).status).toBe(404)
  const none = await hub.call(eve.token, 'teams/publish', { files: [file('team.yml', scopeless)] })
  expect([none.status, none.error.details]).toEqual([403, undefined])
})

test('a name that is hidden from the first look changes nothing', async () => {
  const mallory = await hub.account('mallory')
  const { id: org } = await hub.ok(hub.admin, 'orgs/create', { slug: 'mal', display_name: 'Mal' })
  await hub.ok(hub.admin, 'orgs/add_member', { org_id: org, username: 'mallory', role: 'admin' })
  await hub.ok(mallory.token, 'scopes/create', { org_id: org, slug: 'mal' })
  const disguised = [
    `# name: "@mal/x"\n${leaf('@admin/stolen')}`,
    leaf('\\x40admin/stolen'),
    `description: 'name: @mal/x'\n${leaf('@admin/stolen')}`,
  ]
  for (const text of disguised) {
    expect((await hub.call(mallory.token, 'teams/publish', { files: [file('team.yml', text)] })).status).toBe(404)
  }
  const own = [`# name: "@admin/x"\n${leaf('@mal/one')}`, leaf('\\x40mal/two')]
  for (const text of own) {
    expect((await hub.call(mallory.token, 'teams/publish', { files: [file('team.yml', text)] })).status).toBe(200)
  }
})

describe('what daemons would refuse to store is refused, by its path', () => {
  const deep = Array.from({ length: 1_100 }, (_, n) => file(`d${n}/team.yml`, leaf(`@admin/d${n}`)))
  const cases: [what: string, path: string, besides: ReturnType<typeof file>[]][] = [
    ['a name that reads as an option', '-rf', []],
    ['the same in a folder', 'a/-rf', []],
    ['a name of 300 characters', 'n'.repeat(300), []],
    ['a file where a folder is', 'a', [file('a/b', 'x')]],
    ['a folder where a file is', 'a/b/c', [file('a/b', 'x')]],
    ['a name that differs in case only', 'TEAM.YML', []],
    ['a folder that differs in case only', 'Sub/x', [file('sub/y', 'x')]],
  ]
  test.each(cases)('%s', async (_, path, besides) => {
    const files = [file('team.yml', leaf('@admin/names')), ...besides, file(path, 'x')]
    const reply = await hub.call(hub.admin, 'teams/publish', { files })
    expect(reply.status).toBe(400)
    expect(reply.error.message).toContain(path)
    expect(reply.error.details![0]!.path).toBe(`/files/${files.length - 1}/path`)
  })

  test('a version that is too long for a folder', async () => {
    const version = `1.0.0-${'a'.repeat(300)}`
    const reply = await hub.call(hub.admin, 'teams/publish', { files: [file('team.yml', leaf('@admin/v', version))] })
    expect(reply.status).toBe(400)
  })

  test('more teams than one package may have', async () => {
    const files = [file('team.yml', leaf('@admin/many')), ...deep]
    expect((await hub.call(hub.admin, 'teams/publish', { files })).status).toBe(413)
  })
})

// Without a hub, and so without its database.
describe.skipIf(AGAIN)('a check is bounded', () => {
  const place = { home: '/nonexistent', extra: undefined }
  const none = async () => null
  const light = () => ({ files: [file('team.yml', leaf('@admin/light'))], scope: undefined })

  test('in time: the thread that is at it is ended, and the next package gets another', async () => {
    const checker = new PackageChecker(place, 2_500)
    const slow = { files: heavy('@admin/slow', 400), scope: undefined }
    await expect(checker.check(1, slow, none)).rejects.toMatchObject({ code: 'too_large' })
    expect(await checker.check(1, light(), none)).toMatchObject({ name: '@admin/light' })
    await checker.close()
  }, 60_000)

  test('in what one account has waiting, which holds up nobody else for long', async () => {
    const checker = new PackageChecker(place)
    const tries = await Promise.allSettled(Array.from({ length: 6 }, () => checker.check(1, light(), none)))
    expect(tries.map(each => (each.status === 'rejected' ? each.reason.code : 'ok'))).toEqual([
      ...Array(4).fill('ok'),
      ...Array(2).fill('rate_limited'),
    ])
    expect(await checker.check(1, light(), none)).toMatchObject({ name: '@admin/light' })
    await checker.close()
  })

  test('in what it calls', async () => {
    const checker = new PackageChecker(place)
    const big = 'A'.repeat(14 * 1024 * 1024)
    const phases = [1, 2, 3, 4].map(n => `  - { name: s${n}, type: team, team: "@admin/big${n}" }\n`).join('')
    const caller = {
      files: [file('team.yml', `name: "@admin/c"\nversion: 1.0.0\nphases:\n${phases}`)],
      scope: undefined,
    }
    const find = async (name: string) => ({
      name,
      version: '1.0.0',
      files: [file('team.yml', leaf(name)), { path: 'big', content_base64: big }],
    })
    await expect(checker.check(1, caller, find)).rejects.toMatchObject({ code: 'too_large' })
    await checker.close()
  })
})
