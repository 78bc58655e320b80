// A quarter of a minute of the fault storm, on a small disk that is really full now and then, by a user who may not read everything:
// both need a mount and capabilities of its own, which end with the process. CADRE_STORM_SECONDS sets the time,
// CADRE_TEST_SEED repeats a seed, CADRE_KEEP_STORM names a folder for what a failure leaves.

import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../support/folder.ts'
import { seedOf } from '../support/random.ts'

const SECONDS = Number(process.env.CADRE_STORM_SECONDS ?? (process.env.CADRE_SLOW_TESTS ? 60 : 12))
/** No capability that lets root read what nobody may. */
const HUMBLE = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-dac_override,-dac_read_search']
const works = (command: string[]) => Bun.which(command[0]!) !== null && Bun.spawnSync(command).success

const small = (home: string, ...command: string[]) => [
  'unshare',
  '-rm',
  'sh',
  '-c',
  'home=$1; shift; mount -t tmpfs -o size=80m tmpfs "$home" && exec "$@"',
  'sh',
  home,
  ...command,
]

test(
  'no fault ends the process, keeps it from starting, or touches a run that has nothing to do with it',
  async () => {
    const seed = seedOf('storm')
    const at = folder()
    const home = join(at, 'home')
    mkdirSync(home)
    const full = works(small(home, ...HUMBLE, 'true'))
    if (!full) console.log('left out: a full disk and unreadable files (needs unshare, mount and setpriv)')
    const program = [process.execPath, join(import.meta.dir, 'storm.ts'), at, String(seed), String(SECONDS)]
    const command = full ? small(home, ...HUMBLE, ...program, 'fill') : program
    const child = Bun.spawn(command, { env: process.env, stdout: 'pipe', stderr: 'pipe' })
    try {
      const [code, said, told] = await Promise.all([child.exited, child.stderr.text(), child.stdout.text()])
      expect({ seed, code, said }).toEqual({ seed, code: 0, said: '' })
      console.log(told.trim())
      expect(JSON.parse(told).stretches).toBeGreaterThan(1)
    } finally {
      child.kill()
    }
  },
  (SECONDS + 120) * 1_000,
)
