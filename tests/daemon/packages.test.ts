// What a daemon installs is what the hub published: other bytes, names and packages than were asked for are refused.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { HubClient } from '../../lib/daemon/link/hub-client.ts'
import { packagesOfHub } from '../../lib/daemon/link/package-source.ts'
import { Packages } from '../../lib/daemon/packages/packages.ts'
import { createLog } from '../../lib/log/log.ts'
import { packageDigest } from '../../lib/wire/records/package-files.ts'
import { folder } from '../support/folder.ts'

let reply: object = {}
const server = Bun.serve({ port: 0, fetch: () => Response.json({ ok: true, data: reply }) })
afterAll(() => server.stop(true))

function fresh() {
  const home = folder()
  const packages = new Packages(home, { trust: () => undefined, log: createLog({ write: () => {} }) })
  packages.source = packagesOfHub(new HubClient(server.url.origin, null), 'none')
  return { home, packages }
}

const file = (path: string, text: string) => ({ path, content_base64: Buffer.from(text).toString('base64') })
const NAME = '@acme/t'
const published = [file('a.txt', 'a'), file('team.yml', 'name: "@acme/t"\n')]
const sha256 = packageDigest(published)
const answer = { name: NAME, version: '1.0.0', sha256, files: published }

test('what matches is installed, whatever stands besides', async () => {
  const { home, packages } = fresh()
  reply = { ...answer, files: published.map(each => ({ ...each, mode: 420 })), note: 'from a newer hub' }
  await packages.require(`${NAME}@1.0.0`, sha256)
  expect(existsSync(join(home, 'packages', NAME, '1.0.0', 'team.yml'))).toBe(true)
})

const leaving = [file('../x', ''), ...published]
const wrong: [string, object][] = [
  ['a name that leaves the folder', { ...answer, files: leaving, sha256: packageDigest(leaving) }],
  ['another byte', { ...answer, files: [file('a.txt', 'b'), published[1]] }],
  ['a file more', { ...answer, files: [file('0.txt', ''), ...published] }],
  ['a file less', { ...answer, files: published.slice(1) }],
  ['another name of a file', { ...answer, files: [file('b.txt', 'a'), published[1]] }],
  ['another version than the one that was asked for', { ...answer, version: '0.9.0' }],
  ['another package', { ...answer, name: '@acme/other' }],
]
test.each(wrong)('%s is refused, and nothing is left of it', async (_, given) => {
  const { home, packages } = fresh()
  reply = given
  await expect(packages.require(`${NAME}@1.0.0`, sha256)).rejects.toMatchObject({ code: 'conflict' })
  expect(await packages.resolve(`${NAME}@^1.0.0`)).toBeNull()
  const left = join(home, 'packages')
  expect(
    existsSync(left) ? readdirSync(left, { recursive: true }).filter(each => String(each).includes('1.0.0')) : [],
  ).toEqual([])
})
