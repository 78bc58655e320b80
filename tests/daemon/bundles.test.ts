// Teams that are kept in memory are always the teams that lie on the disk.

import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Bundles } from '../../lib/daemon/packages/bundle-cache.ts'
import type { TeamPackage } from '../../lib/team/team.ts'
import { folder } from '../support/folder.ts'
import { lookup } from '../team/agents.ts'

const leaf = (command: string, version = '1.0.0') =>
  `name: "@local/leaf"\nversion: ${version}\nphases:\n  - { name: a, agent: exec, commands: [{ name: c, run: "${command}" }] }\n`
const caller = (ref: string) =>
  `name: "@local/caller"\nversion: 1.0.0\nphases:\n  - { name: call, type: team, team: "${ref}" }\n`

test('a team whose files did not change is read once; a changed sub-team is read again, a missing one is told', async () => {
  const place = folder()
  const sub = join(place, 'sub/team.yml')
  await Bun.write(join(place, 'team.yml'), caller('./sub'))
  await Bun.write(sub, leaf('true'))
  const bundles = new Bundles()
  const load = () => bundles.load(place, { agents: lookup })

  const first = await load()
  expect(await load()).toBe(first)

  writeFileSync(sub, leaf('false'))
  const second = await load()
  expect(second.id).not.toBe(first.id)
  expect(second.json().teams.sub?.text).toBe(leaf('false'))

  rmSync(sub)
  await expect(load()).rejects.toThrow('has 1 problem')
  writeFileSync(sub, leaf('true'))
  expect((await load()).id).toBe(first.id)
})

test('a team is read once for all who ask at the same time, and anew for who asks after a change', async () => {
  const place = folder()
  const file = join(place, 'team.yml')
  writeFileSync(file, leaf('true'))
  const bundles = new Bundles()
  const load = () => bundles.load(place, { agents: lookup })
  const [first, ...others] = await Promise.all([load(), load(), load()])
  for (const other of others) expect(other).toBe(first!)

  writeFileSync(file, leaf('exit 1'))
  const early = load()
  writeFileSync(file, leaf('false'))
  const late = await load()
  expect(late.json().teams[late.root]!.text).toBe(leaf('false'))
  await early
})

test('a broken team is checked each time', async () => {
  const place = folder()
  await Bun.write(join(place, 'team.yml'), 'name: nothing\n')
  const bundles = new Bundles()
  for (const _ of [1, 2]) await expect(bundles.load(place, { agents: lookup })).rejects.toThrow('problems')
})

test('a package that names another by range asks anew which version that is', async () => {
  const place = folder()
  for (const version of ['1.0.0', '1.1.0']) {
    await Bun.write(join(place, version, 'team.yml'), leaf('true', version).replace('@local', '@other'))
  }
  await Bun.write(join(place, 'caller/team.yml'), caller('@other/leaf@^1').replace('@local', '@some'))
  let newest = '1.0.0'
  const resolve = async (): Promise<TeamPackage> => ({
    name: '@other/leaf',
    version: newest,
    folder: join(place, newest),
  })
  const bundles = new Bundles()
  const root: TeamPackage = { name: '@some/caller', version: '1.0.0', folder: join(place, 'caller') }
  const versions = async (from: string | TeamPackage) =>
    Object.keys((await bundles.load(from, { agents: lookup, resolve })).json().teams)

  for (const from of [root, join(place, 'caller')]) {
    newest = '1.0.0'
    expect(await versions(from)).toContain('@other/leaf@1.0.0')
    newest = '1.1.0'
    expect(await versions(from)).toContain('@other/leaf@1.1.0')
  }
})
