// The long check of the hold: bun run hold-model [sequences]. The seed is printed; CADRE_TEST_SEED repeats it.

import { join } from 'node:path'
import { openStore } from '../db/hub/open-store.ts'
import { folder, removeFolders } from './support/folder.ts'
import { checkHolds } from './support/hold-model.ts'
import { seedOf } from './support/random.ts'

const count = Number(process.argv[2] ?? 20_000)
const started = performance.now()
const store = await openStore(join(folder(), 'hub.db'))
try {
  await checkHolds(store, count, seedOf('hold-model'))
  console.log(`every rule held in ${count} sequences, ${((performance.now() - started) / 1_000).toFixed(0)} s`)
} finally {
  await store.close()
  removeFolders()
}
