// Private dispatch keys at rest.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Sealed } from '../../db/hub/columns.ts'
import { openStore } from '../../db/hub/open-store.ts'
import { firstStart } from '../../lib/hub/access/accounts.ts'
import { currentKey, rotateKeys } from '../../lib/hub/access/dispatch-keys.ts'
import { createSealer } from '../../lib/hub/core/sealer.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { folder } from '../support/folder.ts'

const PEM = '-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n'

test('sealed keys open under their own key only, and never twice alike', () => {
  const sealer = createSealer('one')
  const [first, second] = [sealer.seal(PEM), sealer.seal(PEM)]
  expect(first).not.toContain('PRIVATE')
  expect(first).not.toBe(second)
  expect(sealer.open(first)).toBe(PEM)
  expect(() => createSealer('two').open(first)).toThrow(/not the key/)
  expect(() => createSealer(undefined).open(first)).toThrow(/CADRE_HUB_KEY/)
  expect(() => sealer.open(`${first.slice(0, -6)}AAAA==` as Sealed)).toThrow(/not the key/)
})

test('keys that were stored before there was a key still open', () => {
  expect(createSealer('one').open(createSealer(undefined).seal(PEM))).toBe(PEM)
})

test('under another key of the hub nothing is signed until an org’s key is rotated; then it is', async () => {
  const home = folder()
  const open = async (key: string) =>
    createHub({ store: await openStore(join(home, 'hub.db')), log: createLog({ write: () => {} }), key, home })
  const former = await open('one')
  await firstStart(former, { username: 'admin', password: 'a long password' })
  await former.close()
  const hub = await open('two')
  const sealed = async () => (await currentKey(hub.store, 1)).private_key
  const first = await sealed()
  expect(() => hub.sealer.open(first)).toThrow(/not the key/)
  await hub.store.write(tx => rotateKeys(hub, tx, 1))
  expect(hub.sealer.open(await sealed())).toContain('PRIVATE KEY')
  await hub.close()
})
