// The long storm: bun run chaos [kills], or with writes in doubt: bun run chaos -- --doubt [runs] [targets], where the runs
// are shared among all targets (tests/support/doubt-agents.ts) or those that are named. With --model, random teams against
// the reference model: --seed N, --from TEAM and --count TEAMS repeat or continue a range. The seed is printed;
// CADRE_TEST_SEED repeats it.

import { parseArgs } from 'node:util'
import { modelStorm, newToll as newModelToll } from './run/model/storm.ts'
import { chaos } from './support/chaos.ts'
import { countOf } from './support/count.ts'
import { killProcesses } from './support/daemon.ts'
import { TARGETS } from './support/doubt-agents.ts'
import { doubtStorm, newToll } from './support/doubt-storm.ts'
import { removeFolders } from './support/folder.ts'
import { seedOf } from './support/random.ts'

const started = performance.now()
const seconds = () => ((performance.now() - started) / 1_000).toFixed(0)
const [first, second, ...more] = process.argv.slice(2)

if (first === '--doubt') {
  const names = more.length > 0 ? more : TARGETS
  const seed = seedOf('doubt')
  const runs = Math.ceil(countOf(second, 2_000) / names.length)
  let faults = 0
  for (const name of names) {
    const toll = newToll()
    await doubtStorm(seed, name, runs, toll).catch(error => {
      faults++
      console.error(error)
    })
    const { took, ...counts } = toll
    const sorted = took.toSorted((a, b) => a - b)
    const at = (part: number) => `${((sorted[Math.floor((sorted.length - 1) * part)] ?? 0) / 1_000).toFixed(1)} s`
    console.log(`${seconds()} s: ${name} ${JSON.stringify(counts)}`)
    console.log(`  in doubt for ${at(0.5)} (median), ${at(0.95)} (95 %), ${at(1)} (longest), by the vendor's clock`)
  }
  // What a storm that ended with a fault has left open.
  process.exit(faults === 0 ? 0 : 1)
} else if (first === '--model') {
  const options = { seed: { type: 'string' }, from: { type: 'string' }, count: { type: 'string' } } as const
  const { values } = parseArgs({ args: process.argv.slice(3), options })
  const seed = values.seed === undefined ? seedOf('model') : Number(values.seed)
  const toll = newModelToll()
  const range = { seed, from: Number(values.from ?? 0), count: countOf(values.count, 20_000) }
  const fault = await modelStorm(range, toll, next => {
    console.log(`${seconds()} s: ${JSON.stringify(toll)}; go on with --seed ${seed} --from ${next}`)
  }).then(
    () => null,
    error => error,
  )
  if (fault !== null) console.error(fault)
  await killProcesses()
  removeFolders()
  process.exit(fault === null ? 0 : 1)
} else {
  const { kills } = await chaos(seedOf('chaos'), countOf(first, 3_000), toll => {
    console.log(`${seconds()} s: ${JSON.stringify(toll)}`)
  })
  console.log(`${(kills / ((performance.now() - started) / 1_000)).toFixed(1)} kills a second`)
}
