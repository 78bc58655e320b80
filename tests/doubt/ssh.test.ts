// What ssh knows about a command that may run only once: whether it began, and how it ended.

import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, connect as dial, type Socket } from 'node:net'
import { join } from 'node:path'
import agent from '../../agents/ssh.ts'
import type { AgentContext, AgentResult } from '../../lib/agent/agent-context.ts'
import type { JsonObject } from '../../lib/json.ts'
import { runPhases } from '../../lib/run/engine.ts'
import { testContext } from '../support/context.ts'
import { testEngine } from '../support/engine.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { hasSshd, type Sshd, startSshd } from '../vendors/sshd.ts'

const isThere = hasSshd()
const server = isThere ? await startSshd() : null
afterAll(() => server?.stop())

type Options = NonNullable<Parameters<typeof testContext>[0]>

function run(
  settings: Record<string, unknown>,
  command: string,
  more: JsonObject = {},
  options: Options = {},
): Promise<AgentResult> {
  const network = { allow: [], literalOrigins: [] }
  const { context } = testContext({ agent: 'ssh', action: 'run', settings, network, ...options })
  const entry = { commands: [{ name: 'c', run: command, effect: 'once', ...more }] }
  return agent.actions!.run!.run(entry, context as AgentContext<never>)
}

const stdoutOf = ({ data }: AgentResult) => (data as { commands: { stdout: string }[] }).commands[0]!.stdout

describe.skipIf(!isThere)(`a command that runs once${isThere ? '' : ' (skipped: no sshd)'}`, () => {
  test.each([
    ['Permission denied (publickey).', 255],
    ['kex_exchange_identification: Connection closed by remote host', 255],
    ['ssh: connect to host backup port 22: Connection refused', 255],
    ['Host key verification failed.', 255],
    ['broken', 1],
  ])('and ends by itself with %p and %p may have written', async (words, code) => {
    const file = join(folder(), 'done')
    const error = await failureOf(
      run(server!.settings, `echo x >>"$F"; echo '${words}' >&2; exit ${code}`, { env: { F: file } }),
    )
    expect(error).toMatchObject({ code: 'exit', sent: 'unknown', retryable: false })
    expect(error.message).toBe(`command c exited with code ${code}: ${words}`)
    expect(readFileSync(file, 'utf8')).toBe('x\n')
  })

  test('asks a person after 255, and a resume does not run it again', async () => {
    const file = join(folder(), 'done')
    await using t = await engineWith(server!)
    const { run_id } = await t.start(team(`echo x >>"$F"; echo "Permission denied (publickey)." >&2; exit 255`), {
      file,
    })
    await t.until(run_id, 'awaiting_input')
    expect(t.reviews(run_id)).toMatchObject([{ kind: 'escalation', position: 0 }])
    await t.engine.cancel(run_id)
    await t.engine.ended(run_id)
    await t.engine.resume(run_id)
    await t.until(run_id, 'awaiting_input')
    expect(readFileSync(file, 'utf8')).toBe('x\n')
  })

  test('runs no part of itself when its script did not come as a whole', async () => {
    const answers = new Set<string>()
    const walk = async (cut: number) => {
      const file = join(folder(), 'done')
      await using wire = await cutWire(server!.port, cut)
      const known_hosts = knownAt(server!, wire.port)
      // The comment makes the script longer than a packet, so that cuts fall into the middle of it.
      const script = `echo x >>"$F"\n# ${'-'.repeat(40_000)}\necho y >>"$F"\n`
      const error = await run({ ...server!.settings, port: wire.port, known_hosts }, script, { env: { F: file } }).then(
        () => null,
        thrown => thrown,
      )
      const said = error === null ? 'done' : error.sent
      answers.add(said)
      await Bun.sleep(150)
      const written = existsSync(file) ? readFileSync(file, 'utf8') : ''
      expect([cut, written]).toEqual([
        cut,
        said === 'done' ? 'x\ny\n' : said === 'no' ? '' : expect.stringMatching(/^(x\ny\n)?$/),
      ])
    }
    const cuts = Array.from({ length: 15 }, (_, at) => 2_000 + at * 3_700)
    // A server refuses whom it does not know from ten on at a time.
    for (let at = 0; at < cuts.length; at += 5) await Promise.all(cuts.slice(at, at + 5).map(walk))
    // All three ends were met, so the walk has seen what it is for.
    expect([...answers].sort()).toEqual(['done', 'no', 'unknown'])
  }, 60_000)

  test('has done nothing when it is stopped before it began', async () => {
    const late = await startSshd({ forced: 'sleep 1; eval "$SSH_ORIGINAL_COMMAND"' })
    try {
      const file = join(folder(), 'done')
      const options = { env: { F: file } }
      expect(await failureOf(run(late.settings, 'echo x >"$F"', { ...options, timeout: '400ms' }))).toMatchObject({
        code: 'timeout',
        sent: 'no',
      })
      const signal = AbortSignal.timeout(400)
      expect(await failureOf(run(late.settings, 'echo x >"$F"', options, { signal }))).toMatchObject({
        code: 'aborted',
        sent: 'no',
      })
      await Bun.sleep(1_300)
      expect(existsSync(file)).toBe(false)
      // With time, the same host runs it.
      await run(late.settings, 'echo x >"$F"', options)
      expect(readFileSync(file, 'utf8')).toBe('x\n')
    } finally {
      await late.stop()
    }
  })

  test('may have written when it is stopped after it began', async () => {
    const file = join(folder(), 'done')
    const error = await failureOf(run(server!.settings, 'echo x >"$F"; sleep 60', { env: { F: file }, timeout: '5s' }))
    expect(error).toMatchObject({ code: 'timeout', sent: 'unknown' })
    expect(readFileSync(file, 'utf8')).toBe('x\n')
  })

  const got = join(folder(), 'got')
  test.each([
    ['says something else', 'echo denied'],
    ['repeats the command', 'echo "denied: $SSH_ORIGINAL_COMMAND"'],
    ['lets a shell repeat it', 'eval "echo $SSH_ORIGINAL_COMMAND"'],
    ['ends well at once', 'true'],
    ['fails like ssh', 'echo "Connection closed by remote host" >&2; exit 255'],
    ['reads what it gets', `cat >${got}; echo; exit 3`],
    ['is a shell that reads its stdin', 'sh'],
  ])('is refused by a host whose forced command %s', async (_, forced) => {
    const host = await startSshd({ forced })
    try {
      const file = join(folder(), 'done')
      const error = await failureOf(run(host.settings, 'echo x >"$F"', { env: { F: file }, timeout: '2s' }))
      expect(error.sent).toBe('no')
      // A command that only waits for its input is found out by the time-out alone.
      if (error.code !== 'timeout') expect(error.message + error.hint).toMatch(/forced command|ssh/)
      expect(existsSync(file)).toBe(false)
      // Nothing was said to a program that did not answer.
      expect(existsSync(got) ? readFileSync(got, 'utf8') : '').toBe('')
    } finally {
      await host.stop()
    }
  })

  test('says why a host does not run it, and other commands need no answer', async () => {
    const host = await startSshd({ forced: 'echo restricted' })
    try {
      const error = await failureOf(run(host.settings, 'true'))
      expect(error).toMatchObject({ code: 'rejected', sent: 'no', retryable: false })
      expect(error.message).toContain('127.0.0.1')
      expect(error.hint).toContain('forced command')
      expect(stdoutOf(await run(host.settings, 'true', { effect: 'idempotent' }))).toBe('restricted\n')
    } finally {
      await host.stop()
    }
  })

  test('needs no answer of a forced shell that reads its stdin, if it may run twice', async () => {
    const host = await startSshd({ forced: 'sh' })
    try {
      const more = { effect: 'idempotent', env: { WORD: 'hello' } }
      expect(stdoutOf(await run(host.settings, 'echo "$WORD"', more))).toBe('hello\n')
      expect(await failureOf(run(host.settings, 'false', more))).toMatchObject({ code: 'exit', sent: 'no' })
    } finally {
      await host.stop()
    }
  })

  test.each(['once', 'idempotent'])('with effect %s prints exactly what it prints', async effect => {
    const more = { effect, env: { WORD: 'wörd' } }
    const prints = async (script: string, text: string) =>
      expect(stdoutOf(await run(server!.settings, script, more))).toBe(text)
    await Promise.all([
      prints('printf %s "$WORD"', 'wörd'),
      prints('echo "$WORD"; cat; exit 0', 'wörd\n'),
      prints('true', ''),
      prints('printf "cadre-begin-1\\ncadre-end-"', 'cadre-begin-1\ncadre-end-'),
      prints("cat <<'END'\n$WORD\nEND", '$WORD\n'),
      prints('head -c 60000 /dev/zero | tr "\\0" c', 'c'.repeat(60_000)),
      prints('trap "echo bye" EXIT; exit 0', 'bye\n'),
      prints('exec echo last', 'last\n'),
    ])
  })

  test('that is a broken script ends by itself', async () => {
    expect(await failureOf(run(server!.settings, 'if true; then'))).toMatchObject({ code: 'exit', sent: 'unknown' })
  })
})

const team = (command: string) => `
name: "@local/x"
version: 1.0.0
inputs: [{ name: file, type: string, required: true }]
phases:
  - name: c
    agent: ssh
    action: run
    commands: [{ name: c, effect: once, run: ${JSON.stringify(command)}, env: { F: "{{ inputs.file }}" } }]`

async function engineWith({ settings }: Sshd) {
  const t = await testEngine({ agents: { ssh: agent }, settings: { ssh: settings } })
  return {
    ...t,
    reviews: (id: string) =>
      t.engine.store.reviews
        .list({ state: 'pending', limit: 10, offset: 0 })
        .rows.filter(({ run_id }) => run_id === id),
    async until(id: string, state: string) {
      for (let n = 0; n < 1_000; n++) {
        if (runPhases(t.engine.store, id, key => t.engine.bundle(key)).phases[0]?.state === state) return
        await Bun.sleep(10)
      }
      throw new Error(`the phase did not become ${state}`)
    },
    [Symbol.asyncDispose]: () => t.close(),
  }
}

/** The known hosts of a server that is reached by another port. */
function knownAt({ settings, port }: Sshd, other: number): string {
  const file = join(folder(), 'known')
  writeFileSync(file, readFileSync(settings.known_hosts, 'utf8').replace(`:${port} `, `:${other} `))
  return file
}

/** A wire to a port that is cut, in both directions, after so many bytes to the server. */
async function cutWire(port: number, after: number) {
  const sockets = new Set<Socket>()
  let sent = 0
  const listener = createServer(near => {
    const far = dial(port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    near.on('data', (bytes: Buffer) => {
      const left = after - sent
      sent += bytes.length
      far.write(bytes.subarray(0, Math.max(0, left)))
      if (sent < after) return
      near.destroy()
      far.end()
    })
    far.on('data', bytes => near.write(bytes))
    near.on('close', () => far.end())
    far.on('close', () => near.end())
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  return {
    port: (listener.address() as { port: number }).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => listener.close(resolve))
    },
  }
}
