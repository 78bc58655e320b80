// The log's two forms, its levels and its configuration.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DrizzleQueryError } from 'drizzle-orm'
import { messageOf } from '../../lib/error.ts'
import { createLog, logConsole, logFromEnvironment } from '../../lib/log/log.ts'
import { folder } from '../support/folder.ts'

function written(options: Parameters<typeof createLog>[0], act: (log: ReturnType<typeof createLog>) => void): string[] {
  const lines: string[] = []
  act(createLog({ ...options, write: line => lines.push(line), now: () => 0 }))
  return lines
}

test('JSON: one object a line, whatever the values', () => {
  const [line] = written({ format: 'json' }, log => log.warn('odd', { text: 'a\nb', n: 1 }))
  expect(line).not.toContain('\n')
  expect(JSON.parse(line!)).toEqual({
    time: '1970-01-01T00:00:00.000Z',
    level: 'warn',
    event: 'odd',
    text: 'a\nb',
    n: 1,
  })
})
test('human: fields that could be misread are quoted', () => {
  const [line] = written({ format: 'human' }, log =>
    log.info('started', { url: 'http://x', name: 'a b', eq: 'a=b', none: null }),
  )
  expect(line).toEndWith(' info  started url=http://x name="a b" eq="a=b" none=null')
  expect(line).toMatch(/^\d\d:\d\d:\d\d /)
})
test.each(['a\nb', 'a\x1b[2J', 'a\u009b2J', 'a b\u2028c', 'a\u0085b'])(
  'human: %j neither breaks the line nor steers the terminal',
  text => {
    const [line] = written({ format: 'human' }, log => log.info('started', { text }))
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
    expect(JSON.parse(/ text=(.*)$/.exec(line!)![1]!)).toBe(text)
  },
)
test('lower levels are not written', () => {
  const lines = written({ level: 'warn', format: 'json' }, log => {
    log.debug('a')
    log.info('b')
    log.warn('c')
    log.error('d')
  })
  expect(lines.map(line => JSON.parse(line).event)).toEqual(['c', 'd'])
})
test('a wrong setting is named', () => {
  expect(() => logFromEnvironment({ CADRE_LOG_LEVEL: 'loud' })).toThrow(/CADRE_LOG_LEVEL must be one of debug/)
  expect(() => logFromEnvironment({ CADRE_LOG_FORMAT: 'xml' })).toThrow(/CADRE_LOG_FORMAT/)
})

test('what is said on the console is a line of the log', () => {
  const lines: string[] = []
  const undo = logConsole(createLog({ format: 'json', write: line => lines.push(line), now: () => 0 }))
  console.warn('LISTEN', new Error('failed'))
  undo()
  expect(lines.map(line => JSON.parse(line))).toEqual([
    { time: '1970-01-01T00:00:00.000Z', level: 'warn', event: 'console', said: 'LISTEN Error: failed' },
  ])
})

test('a failed statement is told by what the database said, without its text and parameters', () => {
  const said = new Error('database "hub" is not currently accepting connections')
  expect(messageOf(new DrizzleQueryError('select * from tokens where hash = $1', ['secret'], said))).toBe(said.message)
})

test('a log that cannot be written ends no program, and says how much was lost when it can', async () => {
  const file = join(folder(), 'log')
  const program = `
    import { truncateSync } from 'node:fs'
    import { createLog } from '${join(import.meta.dir, '../../lib/log/log.ts')}'
    const log = createLog({ format: 'json' })
    const say = async n => { log.warn('x'.repeat(100), { n }); await Bun.sleep(5) }
    for (let n = 0; n < 30; n++) await say(n)
    truncateSync('${file}')
    for (let n = 0; n < 3; n++) await say(n)
    console.log('goes on')
  `
  // The file may have two blocks, as on a disk that is full then.
  const child = Bun.spawn(
    ['sh', '-c', `trap "" XFSZ; ulimit -S -f 2; exec "$0" -e "$1" 2>>'${file}'`, process.execPath, program],
    { stdout: 'pipe' },
  )
  expect([await child.stdout.text(), await child.exited]).toEqual(['goes on\n', 0])
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  const told = lines.map(line => JSON.parse(line)).filter(({ event }) => event === 'the log could not be written')
  expect(told).toEqual([expect.objectContaining({ level: 'warn', lines: expect.any(Number) })])
  expect(told[0].lines).toBeGreaterThan(10)
})
