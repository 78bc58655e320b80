// Queue, hold and orders in random sequences (support/hold-model.ts). `bun run hold-model` checks 20,000 of them.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openStore } from '../../db/hub/open-store.ts'
import type { Store } from '../../db/hub/store.ts'
import { folder } from '../support/folder.ts'
import { checkHolds, type Mutant } from '../support/hold-model.ts'
import { seedOf } from '../support/random.ts'

const SEQUENCES = 150

let store: Store
beforeAll(async () => {
  store = await openStore(join(folder(), 'hub.db'))
})
afterAll(() => store.close())

test('a run begins on one daemon at most, and no cancel is lost, whatever is killed or lost', async () => {
  await checkHolds(store, SEQUENCES, seedOf('hold-model'))
}, 300_000)

test.each<Mutant>(['hold', 'fence'])(
  'without the %s a run begins where it must not',
  async without => {
    // Not with `rejects`, which turns the event loop itself while it waits, and then sleeps although the model goes on.
    const fault = await checkHolds(store, 20_000, seedOf('hold-model'), without).then(
      () => null,
      error => error,
    )
    expect(fault).toMatchObject({ cause: { message: expect.stringContaining('began on') } })
  },
  300_000,
)
