// Kills a program at its first write, at its second write, and so on to the last, each time in a new process.

import { environmentAt } from './program.ts'
import { randomFrom, seedOf } from './random.ts'

const AT_ONCE = 3
const MOST = 400

/**
 * Calls `dieAt` with 1, 2, 3 … until it returns false, because the program made fewer writes. With `every`, it calls it
 * for every such write only, from a random one on, which it prints. Returns the number of writes, up to `every` too many.
 */
export async function walkOfKills(dieAt: (write: number) => Promise<boolean>, every = 1): Promise<number> {
  const random = randomFrom(seedOf('kill walk'))
  let next = 1 + random.below(every)
  let beyond = 0
  const walk = async () => {
    while (beyond === 0 && next <= MOST) {
      const write = next
      next += every
      if (!(await dieAt(write))) beyond = beyond === 0 ? write : Math.min(beyond, write)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, walk))
  return beyond - 1
}

/**
 * Runs `program` with these arguments and kills it at its write number `write`. Returns false when the program ended by
 * itself.
 */
export async function killedAt(write: number, home: string, program: string, ...args: string[]): Promise<boolean> {
  const child = Bun.spawn([process.execPath, program, home, ...args], {
    env: { ...environmentAt(home), CADRE_FAILPOINT: String(write) },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const [code, said] = await Promise.all([child.exited, child.stderr.text()])
  if (child.signalCode === 'SIGKILL') return true
  if (code !== 0 || said !== '') throw new Error(`the program ended with ${child.signalCode ?? code}: ${said}`)
  return false
}
