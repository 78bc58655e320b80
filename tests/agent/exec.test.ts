import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import exec from '../../agents/exec.ts'
import { AgentError } from '../../lib/agent/core/agent-error.ts'
import { testAgent } from '../../lib/testing/testing.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { truthful } from '../support/truthful.ts'

const phase = truthful(exec).phase!

await testAgent({
  file: join(import.meta.dir, '../../agents/exec.ts'),
  vendor: () => ({ [Symbol.dispose]() {} }),
  settings: () => ({}),
  examples: { phase: { entry: { commands: [{ name: 'greet', run: 'echo hello' }], env: { A: 'b' } } } },
  badDays: {},
})

interface Command {
  name?: string
  run: string
  env?: Record<string, string | number | boolean | null>
  timeout?: string
  effect?: 'idempotent' | 'once'
}

function run(commands: (string | Command)[], at: TestContext = testContext(), env?: Record<string, string>) {
  const named = commands.map((command, n) => ({
    name: `c${n + 1}`,
    ...(typeof command === 'string' ? { run: command } : command),
  }))
  return phase.run({ commands: named, ...(env && { env }) }, at.context)
}

async function failure(work: Promise<unknown>): Promise<AgentError> {
  const error = await work.then(
    () => null,
    thrown => thrown,
  )
  expect(error).toBeInstanceOf(AgentError)
  return error
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  // A zombie that nobody has reaped yet is dead.
  const state = Bun.spawnSync(['ps', '-o', 'stat=', '-p', String(pid)])
    .stdout.toString()
    .trim()
  return state !== '' && !state.startsWith('Z')
}

async function isGone(pid: number): Promise<boolean> {
  for (let waited = 0; waited < 1_000 && isAlive(pid); waited += 20) await Bun.sleep(20)
  return !isAlive(pid)
}

describe('what a command sees', () => {
  test('PATH, HOME, LANG, its own variables and those of the run; nothing else of the daemon', async () => {
    process.env.CADRE_TEST_LEAK = 'leak'
    const at = testContext()
    const { data } = await run([{ run: 'env | sort', env: { B: 'command', N: 5, T: true } }], at, {
      A: 'phase',
      B: 'phase',
    })
    delete process.env.CADRE_TEST_LEAK
    const { stdout } = (data as { commands: { stdout: string }[] }).commands[0]!
    const seen = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map(line => line.split(/=(.*)/s).slice(0, 2)),
    )
    const known = [
      'PATH',
      'HOME',
      'LANG',
      'A',
      'B',
      'N',
      'T',
      'CADRE_RUN_ID',
      'CADRE_FILES',
      'CADRE_OUT',
      'CADRE_RESULT',
      'CADRE_OUTPUT',
      'CADRE_BUN',
    ]
    // The shell's own.
    const shell = ['PWD', 'OLDPWD', 'SHLVL', '_']
    expect(Object.keys(seen).filter(name => !known.includes(name) && !shell.includes(name))).toEqual([])
    expect(seen).toMatchObject({
      A: 'phase',
      B: 'command',
      N: '5',
      T: 'true',
      PWD: at.workspace,
      CADRE_OUT: phaseFolder(at),
    })
    expect(seen).toMatchObject({ CADRE_RUN_ID: at.context.run.id, CADRE_FILES: join(at.stateDir, 'files') })
  })

  test('a variable whose value is null is empty', async () => {
    const at = testContext()
    await run([{ run: 'printf "<%s>" "${V-unset}" > out', env: { V: null } }], at)
    expect(readFileSync(join(at.workspace, 'out'), 'utf8')).toBe('<>')
  })

  test('its stdin is closed', async () => {
    expect((await run(['cat; echo end'])).data).toMatchObject({ commands: [{ stdout: 'end\n' }] })
  })

  test('a value is data: nothing in it is run', async () => {
    const at = testContext()
    await run([{ run: 'printf %s "$V" > out', env: { V: '$(touch evil); `touch evil`' } }], at)
    expect(readdirSync(at.workspace)).toEqual(['out'])
  })
})

describe('results', () => {
  test('each command with its code, time and output', async () => {
    const { text, data } = await run(['echo one', 'echo two >&2'])
    expect(text).toBe('2 commands passed')
    expect(data).toMatchObject({
      commands: [
        { name: 'c1', exit_code: 0, stdout: 'one\n' },
        { name: 'c2', stdout: '' },
      ],
    })
  })

  test('JSON in CADRE_RESULT becomes data, and none is left for the next attempt', async () => {
    const at = testContext()
    expect((await run(['echo \'{"n":1}\' > "$CADRE_RESULT"'], at)).data).toEqual({ n: 1 })
    expect((await run(['true'], at)).data).toHaveProperty('commands')
    expect(readdirSync(join(at.stateDir, 'tmp'))).toEqual([])
  })

  test('what is no JSON there fails the phase', async () => {
    expect((await failure(run(['echo nonsense > "$CADRE_RESULT"']))).code).toBe('invalid_result')
  })

  test('lines and texts of CADRE_OUTPUT become fields of data, beside what the commands did', async () => {
    const lines = `{ echo "count=3"; echo; echo "url=https://a.test/?b=c<<d"; } >> "$CADRE_OUTPUT"`
    const texts = `{ echo "notes<<END"; printf 'one\\n\\n two=2\\n'; echo END; printf 'empty<<X\\nX\\ncount=4'; } >> "$CADRE_OUTPUT"`
    const { data } = await run([lines, texts])
    const [url, notes] = ['https://a.test/?b=c<<d', 'one\n\n two=2']
    expect(data).toMatchObject({ count: '4', url, notes, empty: '', commands: [{ name: 'c1' }, { name: 'c2' }] })
    expect((await run(['echo a=1 >> "$CADRE_OUTPUT"', 'true'])).data).toHaveProperty('commands')
  })

  test('the fields of CADRE_RESULT win over those of CADRE_OUTPUT, and it must then be an object', async () => {
    const output = 'printf "a=1\\nb=2\\n" > "$CADRE_OUTPUT"'
    expect((await run([output, 'echo \'{"b":3}\' > "$CADRE_RESULT"'])).data).toEqual({ a: '1', b: 3 })
    const error = await failure(run([output, 'echo "[1]" > "$CADRE_RESULT"']))
    expect(error).toMatchObject({ code: 'invalid_result', message: expect.stringContaining('it is not an object') })
  })

  test.each([
    ['a=1\\nno sign', 'line 2 is "no sign"'],
    ['2a=1', 'line 1 is "2a=1"'],
    ['a b=1', 'line 1 is "a b=1"'],
    ['=1', 'line 1 is "=1"'],
    ['a<<', 'line 1 is "a<<"'],
    ['x=1\\na<<END\\ntext\\n END', 'no line END ends the text that begins with `a<<END` in line 2'],
  ])('CADRE_OUTPUT with %s fails the phase, and the error has the line', async (text, said) => {
    const error = await failure(run([`printf '${text}' > "$CADRE_OUTPUT"`]))
    expect(error).toMatchObject({ code: 'invalid_result', message: expect.stringContaining(said) })
  })

  test('CADRE_BUN runs a script', async () => {
    const at = testContext()
    writeFileSync(join(at.workspace, 'script.ts'), 'const n: number = 3\nconsole.log(`count=${n}`)')
    expect((await run(['"$CADRE_BUN" script.ts >> "$CADRE_OUTPUT"'], at)).data).toMatchObject({ count: '3' })
  })

  test('files of CADRE_OUT lie in the folder of the phase', async () => {
    const at = testContext()
    mkdirSync(phaseFolder(at), { recursive: true })
    await run(['echo report > "$CADRE_OUT/report.md"'], at)
    expect(readFileSync(join(phaseFolder(at), 'report.md'), 'utf8')).toBe('report\n')
  })

  test('stdout is kept up to 64 KiB, all of it is logged', async () => {
    const at = testContext()
    const { data } = await run(
      ['i=0; while [ $i -lt 2000 ]; do echo "line $i ........................................"; i=$((i+1)); done'],
      at,
    )
    const { stdout } = (data as { commands: { stdout: string }[] }).commands[0]!
    expect(Buffer.byteLength(stdout)).toBe(64 * 1024)
    expect(at.lines).toHaveLength(2_000)
    expect(at.lines.at(-1)).toStartWith('line 1999 ')
  })

  test('lines are logged while the command runs', async () => {
    const at = testContext()
    const running = run(['echo first; sleep 0.4; echo last'], at)
    for (let waited = 0; waited < 350 && at.lines.length === 0; waited += 10) await Bun.sleep(10)
    expect(at.lines).toEqual(['first'])
    await running
    expect(at.lines).toEqual(['first', 'last'])
  })

  test('secrets are masked in the log, in data and in errors, also where output arrives in pieces or is cut', async () => {
    const at = testContext({ secrets: ['hunter2hunter2'] })
    const { data } = await run(['printf hunter2; sleep 0.05; echo hunter2; printf hunter2hunter2 | base64 >&2'], at)
    expect(JSON.stringify([data, at.lines])).not.toMatch(/hunter2|aHVudGVyMmh1bnRlcjI/)
    const filling = `head -c ${64 * 1024 - 7} /dev/zero | tr '\\0' x; printf hunter2hunter2`
    const cut = (await run([filling], at)).data as { commands: { stdout: string }[] }
    expect(cut.commands[0]!.stdout).not.toContain('hunter')
    expect((await failure(run(['echo hunter2hunter2 >&2; exit 1'], at))).message).not.toContain('hunter2')
  })
})

describe('failures', () => {
  test('a non-zero exit ends the phase, with name, code and the last lines', async () => {
    const at = testContext()
    const error = await failure(run(['true', 'echo why >&2; exit 7', 'touch never'], at))
    expect(error.message).toBe('command c2 exited with code 7: why')
    expect(readdirSync(at.workspace)).toEqual([])
  })

  test('a failure may be repeated when every command may run again', async () => {
    const once = { run: 'true', effect: 'once' as const }
    expect((await failure(run(['exit 1']))).retryable).toBe(true)
    expect((await failure(run([{ run: 'exit 1', effect: 'idempotent' }, 'true']))).retryable).toBe(true)
    expect((await failure(run(['exit 1', once]))).retryable).toBe(false)
    expect((await failure(run([once, 'exit 1']))).retryable).toBe(false)
  })

  test('a command that a signal ends says so', async () => {
    expect((await failure(run(['kill -9 $$']))).message).toContain('was ended by SIGKILL')
  })

  test('a workspace that is not there', async () => {
    const error = await failure(run(['true'], testContext({ workspace: '/nowhere/at/all' })))
    expect(error).toMatchObject({ code: 'not_started', sent: 'no' })
  })

  test('a variable that is too large is named', async () => {
    const error = await failure(run([{ run: 'true', env: { LIST: 'x'.repeat(200_000) } }]))
    expect(error).toMatchObject({ code: 'not_started', message: expect.stringContaining('LIST with 200000 bytes') })
    expect(error.hint).toContain('in a file')
  })

  test('before the first command with effect once nothing was written; after it nobody knows', async () => {
    const once = { run: 'true', effect: 'once' as const }
    expect((await failure(run(['exit 1', once]))).sent).toBe('no')
    expect((await failure(run([once, 'exit 1']))).sent).toBeUndefined()
    const effect = phase.effect as (entry: unknown) => string
    expect(
      effect({
        commands: [
          { name: 'a', run: 'x' },
          { name: 'b', ...once },
        ],
      }),
    ).toBe('once')
    expect(effect({ commands: [{ name: 'a', run: 'x' }] })).toBe('idempotent')
  })
})

describe('processes', () => {
  const tree = 'sleep 60 & echo $! > child; sleep 60 & echo $! > other; wait'
  const pids = (at: TestContext) =>
    ['child', 'other'].map(name => Number(readFileSync(join(at.workspace, name), 'utf8')))

  test('a time-out takes the whole group', async () => {
    const at = testContext()
    const error = await failure(run([{ run: tree, timeout: '1s' }], at))
    expect(error).toMatchObject({ code: 'timeout', retryable: true })
    expect(await Promise.all(pids(at).map(isGone))).toEqual([true, true])
  })

  test.each(['30d', '999999999999999999999d'])(
    'a time-out that no timer can count (%s) ends nothing early',
    async timeout => {
      expect(await run([{ run: 'sleep 0.3', timeout }])).toMatchObject({ data: { commands: [{ exit_code: 0 }] } })
    },
  )

  test('an abort takes the whole group, within the grace even where SIGTERM is ignored', async () => {
    const controller = new AbortController()
    const at = testContext({ signal: controller.signal })
    const stubborn = `trap '' TERM; ${tree}`
    const running = failure(run([stubborn], at))
    while (!existsSync(join(at.workspace, 'other'))) await Bun.sleep(10)
    await Bun.sleep(50)
    const asked = performance.now()
    controller.abort()
    expect((await running).code).toBe('aborted')
    // What a cancel promises.
    expect(performance.now() - asked).toBeLessThan(5_000)
    expect(await Promise.all(pids(at).map(isGone))).toEqual([true, true])
  })

  test('what a command leaves running in its group ends with it', async () => {
    const at = testContext()
    await run(['sleep 60 & echo $! > child; echo $! > other; echo done'], at)
    expect(await Promise.all(pids(at).map(isGone))).toEqual([true, true])
  })

  test('after an abort no further command starts', async () => {
    const controller = new AbortController()
    const at = testContext({ signal: controller.signal })
    controller.abort(new AgentError('stopped', { code: 'aborted' }))
    await failure(run(['touch never'], at))
    expect(readdirSync(at.workspace)).toEqual([])
  })
})

test('a file of an earlier phase is where CADRE_FILES says', async () => {
  const at = testContext()
  mkdirSync(join(at.stateDir, 'files/fetch'), { recursive: true })
  writeFileSync(join(at.stateDir, 'files/fetch/a'), 'data')
  expect((await run(['cat "$CADRE_FILES/fetch/a"'], at)).data).toMatchObject({ commands: [{ stdout: 'data' }] })
})
