// Random rounds with homes that are copied in the middle of a run: the original goes on, is killed, or is killed and
// started again, and the copy is started beside it, alone or with a hub. Nothing may be written twice, whatever happens,
// because nobody answers `retry`; and without a resume the copy may write nothing at all.

import { expect } from 'bun:test'
import { join } from 'node:path'
import { until } from './bounded.ts'
import { copyOf, homeWithFinds } from './copied-home.ts'
import { command, files, type RunningDaemon, spawnDaemon } from './daemon.ts'
import { folder } from './folder.ts'
import { startTestHub, type TestHub } from './hub.ts'
import { type Random, randomFrom } from './random.ts'

/** What happened, counted over all rounds. */
export interface Toll {
  rounds: number
  /** Rounds in which the run was in the middle when the copy was made. */
  inTheMiddle: number
  /** Copies that a database torn by `cp` made useless, which the daemon said. */
  damaged: number
  withHub: number
  killed: number
  resumed: number
  /** Runs of copies that ended by what other systems said. */
  completed: number
  /** Runs of copies that asked a person. */
  asked: number
  writes: number
}

const WAYS = ['copy', 'frozen', 'backup'] as const
/** Long enough for a request on this machine that was cut off. */
const SETTLE = { CADRE_SETTLE: '250ms' }
const NAME = '@admin/copied'

export async function copiedHomes(seed: number, rounds: number, tell: (toll: Toll) => void): Promise<Toll> {
  const random = randomFrom(seed)
  const hub = await startTestHub()
  await hub.addTeam(
    `name: "${NAME}"\nversion: 1.0.0\nphases: [{ name: none, agent: exec, commands: [{ name: c, run: "true" }] }]\n`,
  )
  const vendor = slowVendor(random)
  const toll = {
    ...{ rounds: 0, inTheMiddle: 0, damaged: 0, withHub: 0, killed: 0, resumed: 0, completed: 0, asked: 0, writes: 0 },
  }
  try {
    while (toll.rounds < rounds) {
      const round = new Round(random, hub, vendor, toll)
      try {
        await round.play()
      } finally {
        await round.end()
      }
      toll.rounds++
      toll.writes = vendor.writes.length
      if (toll.rounds % 10 === 0) tell(toll)
    }
    return toll
  } finally {
    await vendor.stop()
    await hub.stop()
  }
}

/** Records each write at once, answers late, and sometimes not at all. */
function slowVendor(random: Random) {
  const writes: { name: string; key: string | null }[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (request.method === 'GET') {
        const found = writes.some(({ key }) => key === searchParams.get('key'))
        return new Response(found ? 'found' : 'none', { status: found ? 200 : 404 })
      }
      writes.push({ name: pathname.slice(1), key: request.headers.get('idempotency-key') })
      await Bun.sleep(random() * 200)
      return random.once(12) ? new Response('late', { status: 504 }) : Response.json({}, { status: 201 })
    },
  })
  return { url: server.url.origin, writes, stop: () => server.stop(true) }
}

class Round {
  readonly #random: Random
  readonly #hub: TestHub | null
  readonly #vendor: ReturnType<typeof slowVendor>
  readonly #toll: Toll
  readonly #prefix: string
  readonly #daemons: RunningDaemon[] = []
  /** What the run writes when it completes. */
  readonly #things: string[] = []

  constructor(random: Random, hub: TestHub, vendor: ReturnType<typeof slowVendor>, toll: Toll) {
    this.#random = random
    this.#hub = random.once(2) ? hub : null
    this.#vendor = vendor
    this.#toll = toll
    this.#prefix = `${toll.rounds}-`
  }

  async end(): Promise<void> {
    await Promise.all(this.#daemons.map(daemon => daemon.kill('SIGKILL')))
  }

  async play(): Promise<void> {
    const random = this.#random
    const home = homeWithFinds()
    const original = await this.#spawn(home, await this.#enrolment())
    const run = await this.#start(original, this.#team())
    await Bun.sleep(random() * 500)
    const copy = await this.#copy(original)
    const isEarly = random.once(2)
    const early = isEarly ? await this.#startCopy(copy) : null
    if (!(await this.#endOf(original, run, home))) this.#toll.killed++
    const second = early ?? (isEarly ? null : await this.#startCopy(copy))
    if (!second) return
    // What the copy does by itself has begun when it has done this.
    const probe = await this.#start(second, this.#writes('finds', 'probe'))
    await this.#settled(second, probe)
    this.#expectOnce('before a resume')
    await this.#expectTwo(original, second)

    const state = await this.#stateOf(second, run)
    if (state === null || state === 'completed') return
    this.#toll.inTheMiddle++
    expect(['interrupted', 'awaiting_input']).toContain(state)
    if (random.once(4)) return
    this.#toll.resumed++
    await second.call('/v1/runs/resume', { run_id: run })
    const ended = await this.#settled(second, run)
    this.#expectOnce(`after a resume that ended ${ended}`)
    if (ended === 'completed') {
      this.#toll.completed++
      const written = this.#vendor.writes.map(({ name }) => name)
      expect(written).toEqual(expect.arrayContaining(this.#things.map(thing => this.#prefix + thing)))
    }
    if (ended === 'awaiting_input') this.#toll.asked++
    expect(['completed', 'awaiting_input']).toContain(ended)
  }

  async #enrolment(): Promise<Record<string, string>> {
    if (!this.#hub) return {}
    this.#toll.withHub++
    const { token } = await this.#hub.realmToken(this.#hub.admin, this.#hub.realm)
    return { CADRE_HUB_URL: this.#hub.url, CADRE_REALM_TOKEN: token }
  }

  async #spawn(home: string, env: Record<string, string> = {}): Promise<RunningDaemon> {
    const daemon = await spawnDaemon({ home, env: { ...SETTLE, ...env } })
    this.#daemons.push(daemon)
    return daemon
  }

  async #start(daemon: RunningDaemon, contents: Record<string, string>): Promise<string> {
    return (await daemon.call<{ run_id: string }>('/v1/runs/start', { path: files(contents) })).run_id
  }

  /** A team of a few phases, one after another or at once, some of them maps. */
  #team(): Record<string, string> {
    const random = this.#random
    const count = 3 + random.below(4)
    const isPatient = random.once(2)
    const agents = Array.from({ length: count }, () => (isPatient || random.once(2) ? 'finds' : 'http'))
    const phases = agents.map((agent, at) => {
      const after = at > 0 && random.below(3) > 0 ? `\n    depends_on: [p${at - 1}]` : ''
      const isMap = random.once(4)
      this.#things.push(...(isMap ? ['a', 'b', 'c'].map(item => `p${at}-${item}`) : [`p${at}`]))
      if (isMap) {
        const inputs = `inputs: { name: "${this.#prefix}p${at}-{{ item }}" }`
        return `  - name: p${at}${after}\n    type: map\n    items: [a, b, c]\n    key: "{{ item }}"\n    team: ./${agent}\n    concurrency: 2\n    ${inputs}`
      }
      return `  - name: p${at}${after}\n    ${this.#phase(agent, `${this.#prefix}p${at}`)}`
    })
    const one = (agent: string) =>
      `name: "@local/${agent}"\nversion: 1.0.0\ninputs: [{ name: name, type: string }]\nphases:\n  - name: write\n    ${this.#phase(agent, '{{ inputs.name }}')}\n`
    return {
      'team.yml': `name: "${NAME}"\nversion: 1.0.0\nphases:\n${phases.join('\n')}\n`,
      'finds/team.yml': one('finds'),
      'http/team.yml': one('http'),
    }
  }

  #writes(agent: string, thing: string): Record<string, string> {
    const phase = this.#phase(agent, `${this.#prefix}${thing}`)
    return { 'team.yml': `name: "@local/${thing}"\nversion: 1.0.0\nphases:\n  - name: write\n    ${phase}\n` }
  }

  #phase(agent: string, thing: string): string {
    const request = agent === 'http' ? ', method: POST, body: x' : ''
    return `agent: ${agent}\n    target_entries: [{ name: it, url: "${this.#vendor.url}/${thing}"${request} }]`
  }

  async #copy({ home, pid }: RunningDaemon): Promise<string> {
    const way = this.#random.of(WAYS)
    if (way === 'backup') {
      const [file, to] = [join(folder(), 'backup'), join(folder(), 'restored')]
      for (const args of [
        ['backup', file],
        ['restore', file, '--home', to],
      ]) {
        expect(await command(args, { home })).toMatchObject({ code: 0, stderr: '' })
      }
      return to
    }
    if (way === 'frozen') process.kill(pid, 'SIGSTOP')
    try {
      return copyOf(home)
    } finally {
      if (way === 'frozen') process.kill(pid, 'SIGCONT')
    }
  }

  /** Null when \`cp\` has torn the database, which the daemon says. */
  async #startCopy(copy: string): Promise<RunningDaemon | null> {
    try {
      return await this.#spawn(copy)
    } catch (error) {
      expect(String(error)).toContain('is damaged')
      this.#toll.damaged++
      return null
    }
  }

  /** The original ends its run, or is killed for good: returns false then. It may be killed and started again first. */
  async #endOf(original: RunningDaemon, run: string, home: string): Promise<boolean> {
    const way = this.#random.below(4)
    if (way > 1) {
      await this.#settled(original, run)
      return true
    }
    await Bun.sleep(this.#random() * 150)
    await original.kill('SIGKILL')
    if (way === 0) return false
    await this.#settled(await this.#spawn(home), run)
    return true
  }

  #settled(daemon: RunningDaemon, run: string): Promise<string> {
    return until(async () => {
      const state = await this.#stateOf(daemon, run)
      return state !== null && !['queued', 'running'].includes(state) && state
    }, 'the end of a run')
  }

  async #stateOf(daemon: RunningDaemon, run_id: string): Promise<string | null> {
    const { status, body } = await daemon.post('/v1/runs/get', { run_id })
    return status === 404 ? null : body.data.state
  }

  #expectOnce(when: string): void {
    const counts = new Map<string, number>()
    for (const { name } of this.#vendor.writes) {
      if (name.startsWith(this.#prefix)) counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    expect([when, [...counts].filter(([, count]) => count > 1)]).toEqual([when, []])
  }

  /** The hub knows two daemons, and neither of them was told that it lacks what the other did. */
  async #expectTwo(original: RunningDaemon, second: RunningDaemon): Promise<void> {
    if (!this.#hub) return
    const ids = [original, second].map(async ({ home }) => {
      const { hub } = JSON.parse((await command(['status', '--json'], { home })).stdout)
      return hub.daemon_id as string
    })
    const [first, other] = await Promise.all(ids)
    expect(other).not.toBe(first!)
    const { daemon_id } = await this.#hub.ok(this.#hub.admin, 'daemons/get', { daemon_id: other })
    expect(daemon_id).toBe(other)
    for (const { output } of [original, second]) expect(output.stderr).not.toContain('sent to the hub again')
  }
}
