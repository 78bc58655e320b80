// The long storm: bun run chaos [kills]. The seed is printed; CADRE_TEST_SEED repeats it.

import { chaos } from './support/chaos.ts'
import { seedOf } from './support/random.ts'

const started = performance.now()
const { kills } = await chaos(seedOf('chaos'), { kills: Number(process.argv[2] ?? 3_000) }, toll => {
  console.log(`${((performance.now() - started) / 1_000).toFixed(0)} s: ${JSON.stringify(toll)}`)
})
console.log(`${(kills / ((performance.now() - started) / 1_000)).toFixed(1)} kills a second`)
