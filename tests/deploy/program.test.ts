// The compiled program, and nothing else of ours.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { compile } from '../../deploy/build.ts'
import manifest from '../../package.json'
import { machine } from '../support/machine.ts'
import { journey } from './journey.ts'

const on = machine()
await compile(join(on.bin, 'cadre'))

journey(on, { cadre: 'cadre', called: 'cadre', examples: join(import.meta.dir, '../../examples') })

test('upgrade says what to replace', async () => {
  const { code, stdout } = await on.run(['cadre', 'upgrade'])
  expect([code, stdout]).toEqual([
    0,
    expect.stringContaining(`cadre ${manifest.version} is installed as the program ${on.bin}`),
  ])
})
