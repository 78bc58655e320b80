// The time of day in the zone of this machine is that of JavaScript, which takes longer to find it the first time.

import { expect, test } from 'bun:test'
import { join } from 'node:path'

const CLOCK = join(import.meta.dir, '../lib/text/clock.ts')
/** In winter and in summer, at midnight, and beyond 2038. */
const TIMES = ['1999-12-31T23:59:59.999Z', '2026-01-15T00:00:00Z', '2026-07-15T12:34:56.789Z', '2050-07-01T06:05:04Z']

test.each(['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'America/St_Johns', 'Australia/Lord_Howe'])('%s', TZ => {
  const program = `
    const { clockText } = await import(${JSON.stringify(CLOCK)})
    const times = ${JSON.stringify(TIMES)}.map(Date.parse)
    console.log(JSON.stringify([times.map(clockText), times.map(at => new Date(at).toTimeString().slice(0, 8))]))`
  const { stdout } = Bun.spawnSync([process.execPath, '-e', program], { env: { ...process.env, TZ } })
  const [found, expected] = JSON.parse(stdout.toString())
  expect(found).toEqual(expected)
})
