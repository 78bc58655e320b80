// Errors that no code has handled end a server, and are a line of its log in the format of the others.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../support/folder.ts'
import { CHEAP_PASSWORDS, environmentAt } from '../support/program.ts'

const ROOT = join(import.meta.dir, '../..')

test.each([
  ['hub', 'throw new Error("thrown\\nlater")'],
  ['daemon', 'Promise.reject(new Error("thrown\\nlater"))'],
])(
  'of the %s: %s',
  async (program, fault) => {
    const [home, place] = [folder(), folder()]
    const file = join(place, 'fault.ts')
    // It waits until the server has said that it listens.
    writeFileSync(
      file,
      `const write = process.stdout.write.bind(process.stdout)
     process.stdout.write = (...said) => {
       if (String(said[0]).includes('listening on')) setTimeout(() => { ${fault} }, 20)
       return write(...said)
     }`,
    )
    const child = Bun.spawn(
      [process.execPath, '--preload', file, join(ROOT, `${program}.ts`), 'serve', '--port', '0'],
      {
        cwd: home,
        env: {
          ...environmentAt(home),
          ...CHEAP_PASSWORDS,
          CADRE_HOME: home,
          CADRE_LOG_FORMAT: 'json',
          CADRE_HUB_KEY: 'k',
        },
        stdout: 'pipe',
        stderr: 'pipe',
      },
    )
    const [out, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    expect([code, out]).toEqual([1, expect.stringContaining('listening on')])
    // The first start of a hub says a password for people.
    const lines = stderr
      .trimEnd()
      .split('\n')
      .filter(line => !line.startsWith('first start: '))
    const told = lines.map(line => JSON.parse(line))
    expect(told.at(-1)).toMatchObject({
      level: 'error',
      event: 'a fault of this program ends it',
      error: 'Error: thrown\nlater',
    })
    expect(told.at(-1).stack[0]).toContain(file)
  },
  30_000,
)
