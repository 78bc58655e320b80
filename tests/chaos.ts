// The long storm: bun run chaos [kills]. The seed is printed; CADRE_TEST_SEED repeats it.

import { chaos } from './support/chaos.ts'
import { seedOf } from './support/random.ts'

const started = performance.now()
const toll = await chaos(seedOf('chaos'), { kills: Number(process.argv[2] ?? 3_000) })
console.log(toll, `${((performance.now() - started) / 1_000).toFixed(0)} s`)
