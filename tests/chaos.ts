// The long storm: bun run chaos [kills], or with writes in doubt: bun run chaos -- --doubt [runs]. The seed is printed;
// CADRE_TEST_SEED repeats it.

import { chaos } from './support/chaos.ts'
import { doubtStorm } from './support/doubt-storm.ts'
import { seedOf } from './support/random.ts'

const started = performance.now()
const seconds = () => ((performance.now() - started) / 1_000).toFixed(0)
const [first, second] = process.argv.slice(2)

if (first === '--doubt') {
  const { took, ...toll } = await doubtStorm(seedOf('doubt'), Number(second ?? 2_000), ({ took: _, ...toll }) => {
    if (toll.runs % 200 === 0) console.log(`${seconds()} s: ${JSON.stringify(toll)}`)
  })
  const sorted = took.toSorted((a, b) => a - b)
  const at = (part: number) => `${((sorted[Math.floor((sorted.length - 1) * part)] ?? 0) / 1_000).toFixed(1)} s`
  console.log(`${seconds()} s: ${JSON.stringify(toll)}`)
  console.log(`in doubt for ${at(0.5)} (median), ${at(0.95)} (95 %), ${at(1)} (longest), by the vendor's clock`)
} else {
  const { kills } = await chaos(seedOf('chaos'), { kills: Number(first ?? 3_000) }, toll => {
    console.log(`${seconds()} s: ${JSON.stringify(toll)}`)
  })
  console.log(`${(kills / ((performance.now() - started) / 1_000)).toFixed(1)} kills a second`)
}
