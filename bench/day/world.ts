// A company's installation on one machine: PostgreSQL behind an address that can fall silent, with a standby if asked for,
// two hubs, Caddy with deploy/Caddyfile and TLS, four daemons that trust its authority, and a bucket.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../tests/support/bounded.ts'
import { startCaddy } from '../../tests/support/caddy.ts'
import { folder } from '../../tests/support/folder.ts'
import { freePort } from '../../tests/support/free-port.ts'
import { CHEAP_PASSWORDS, environmentAt } from '../../tests/support/program.ts'
import { METRICS_TOKEN } from '../../tests/support/served-hub.ts'
import { StandbyPair, startPostgres } from '../../tests/support/standby.ts'
import { ACCESS, BUCKET, type ObjectVendor, objectVendor } from '../../tests/vendors/objectstore.ts'
import { type DatabaseFront, databaseFront } from './database-front.ts'
import { type Answer, type Call, Load, TEAM, teamText } from './load.ts'
import { type Program, start, TREE } from './program.ts'

export interface WorldOptions {
  /** Whether a standby follows the database. */
  standby?: boolean
  /** Where the hubs keep files of runs, in place of the bucket. */
  artifacts?: string
  /** The home of the first hub, and that of the first daemon. */
  hubHome?: string
  daemonHome?: string
  /** More variables of the second hub, and of the first daemon. */
  secondHub?: Record<string, string>
  firstDaemon?: Record<string, string>
  /** The sources with which everything begins. */
  tree?: string
  /** Called when the hubs have made their tables, and before they serve. */
  prepare?(database: string): Promise<void>
}

const DAEMONS = 4
const PASSWORD = 'known'
export const KEY = 'the-key-of-the-day'
/** Longer than Caddy takes to notice. */
const DRAIN_SECONDS = '4'
const CALL_MS = 20_000

interface Hub {
  port: number
  home: string
  env: Record<string, string>
  /** Null while it is stopped. */
  program: Program | null
}

interface Daemon {
  home: string
  env: Record<string, string>
  port: number
  program: Program | null
}

export class World {
  readonly hubs: Hub[] = []
  readonly daemons: Daemon[] = []
  readonly front: DatabaseFront
  readonly pair: StandbyPair | null
  readonly bucket: ObjectVendor
  /** The address of the database without the front. */
  readonly database: string
  tree: string
  realm = ''
  readonly #ports = { httpsPort: freePort(), httpPort: freePort() }
  readonly #authority: string
  #caddy: Awaited<ReturnType<typeof startCaddy>> | null = null
  #ca = ''
  #session = ''
  #realmToken = ''

  private constructor(
    parts: { front: DatabaseFront; pair: StandbyPair | null; bucket: ObjectVendor; database: string },
    tree: string,
  ) {
    this.#authority = folder()
    this.front = parts.front
    this.pair = parts.pair
    this.bucket = parts.bucket
    this.database = parts.database
    this.tree = tree
  }

  static async open(stack: AsyncDisposableStack, options: WorldOptions): Promise<{ world: World; load: Load }> {
    const pair = options.standby ? stack.use(await StandbyPair.start()) : null
    const database = pair?.location ?? stack.use(await startPostgres({})).location
    const front = stack.use(await databaseFront(Number(new URL(database).port)))
    const bucket = stack.use(await objectVendor())
    const world = new World({ front, pair, bucket, database }, options.tree ?? TREE)
    stack.defer(() => world.#close())
    for (const at of [0, 1]) {
      const home = (at === 0 && options.hubHome) || folder()
      world.hubs.push({ port: freePort(), home, env: world.#hubEnv(home, options, at), program: null })
    }
    // One after the other, so that rows can be made before anybody serves.
    await world.startHub(0)
    if (options.prepare) {
      await world.stopHub(0)
      await options.prepare(database)
      await world.startHub(0)
    }
    await world.startHub(1)
    await world.startProxy()
    const lines = join(folder(), 'lines')
    await world.#enrol(lines, options)
    return { world, load: new Load(world.call, { realm_id: world.realm }, lines) }
  }

  get url(): string {
    return `https://127.0.0.1:${this.#ports.httpsPort}`
  }

  #hubEnv(home: string, { artifacts, secondHub }: WorldOptions, at: number): Record<string, string> {
    const location = new URL(this.database)
    location.port = String(this.front.port)
    return {
      ...{ ...environmentAt(home), ...CHEAP_PASSWORDS, CADRE_HOME: home, CADRE_HUB_DATABASE: location.href },
      ...{ CADRE_HUB_KEY: KEY, CADRE_ADMIN_PASSWORD: PASSWORD, CADRE_TRUST_PROXY: '1' },
      ...{ CADRE_DRAIN_SECONDS: DRAIN_SECONDS, CADRE_METRICS_TOKEN: METRICS_TOKEN, CADRE_LOG_FORMAT: 'json' },
      ...{ CADRE_ARTIFACTS: artifacts ?? `s3://${BUCKET}/runs`, AWS_ENDPOINT_URL_S3: this.bucket.endpoint },
      ...{ AWS_ACCESS_KEY_ID: ACCESS.access_key_id, AWS_SECRET_ACCESS_KEY: ACCESS.secret_access_key },
      AWS_REGION: ACCESS.region,
      ...(at === 1 && secondHub),
    }
  }

  async startHub(at: number, env: Record<string, string> = {}): Promise<void> {
    const hub = this.hubs[at]!
    const words = [process.execPath, join(this.tree, 'hub.ts'), 'serve', '--port', String(hub.port)]
    hub.program = await start(words, { ...hub.env, ...env })
  }

  async stopHub(at: number, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.hubs[at]!.program?.stop(signal)
    this.hubs[at]!.program = null
  }

  async startDaemon(at: number): Promise<void> {
    const daemon = this.daemons[at]!
    const words = [process.execPath, join(this.tree, 'daemon.ts'), 'serve', '--port', String(daemon.port)]
    daemon.program = await start(words, this.#daemonEnv(at))
  }

  async stopDaemon(at: number): Promise<void> {
    await this.daemons[at]!.program?.stop()
    this.daemons[at]!.program = null
  }

  #daemonEnv(at: number): Record<string, string> {
    const { home, env } = this.daemons[at]!
    return {
      ...{ ...environmentAt(home), LANG: 'C.UTF-8', CADRE_HOME: home, CADRE_LOG_FORMAT: 'json' },
      ...{ CADRE_HUB_URL: this.url, CADRE_REALM_TOKEN: this.#realmToken, CADRE_DAEMON_NAME: `build-${at + 1}` },
      NODE_EXTRA_CA_CERTS: join(this.#authority, 'trusted.crt'),
      ...env,
    }
  }

  /** `home` is where Caddy's authority is; another one makes a certificate that nobody trusts. */
  async startProxy(home = this.#authority): Promise<void> {
    const [httpsPort, storage] = [this.#ports.httpsPort, new URL(this.bucket.endpoint).host]
    const places = { HUB_DOMAIN: `127.0.0.1:${httpsPort}`, FILES_DOMAIN: `files.localhost:${httpsPort}` }
    const upstreams = this.hubs.map(({ port }) => `127.0.0.1:${port}`).join(' ')
    this.#caddy = await startCaddy({ ...places, HUBS: upstreams, STORAGE: storage }, { ...this.#ports, home })
    if (home !== this.#authority) return
    this.#ca = this.#caddy.ca
    writeFileSync(join(home, 'trusted.crt'), this.#ca)
  }

  async stopProxy(): Promise<void> {
    await this.#caddy?.stop()
    this.#caddy = null
  }

  /** A call of the admin through the proxy. */
  readonly call: Call = async (path, body = {}) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${this.#session}` }
    try {
      const reply = await fetch(`${this.url}/v1/${path}`, {
        ...{ method: 'POST', headers, body: JSON.stringify(body), tls: { ca: this.#ca } },
        signal: AbortSignal.timeout(CALL_MS),
      })
      const said = await reply.json().catch(() => null)
      const answer = said as { data?: unknown; error?: { code: string } } | null
      const code = reply.ok ? 'ok' : (answer?.error?.code ?? 'of the proxy')
      return { status: reply.status, code, data: answer?.data } as Answer
    } catch (error) {
      const { name, code } = error as { name?: string; code?: string }
      return { status: 0, code: code && typeof code === 'string' ? code : (name ?? 'no answer'), data: null }
    }
  }

  /** The data of a call that must succeed. */
  async ok(path: string, body: object = {}): Promise<Answer['data']> {
    const { code, status, data } = await this.call(path, body)
    if (code !== 'ok') throw new Error(`${path}: ${status} ${code}`)
    return data
  }

  async #enrol(lines: string, { daemonHome, firstDaemon = {} }: WorldOptions): Promise<void> {
    const signIn = () => this.call('session/create', { username: 'admin', password: PASSWORD })
    const session = await until(async () => {
      const { code, data } = await signIn()
      return code === 'ok' && data
    }, 'the hub signs in')
    this.#session = session.token
    this.realm = (await this.ok('realms/list')).realms[0].id
    const files = [{ path: 'team.yml', content_base64: Buffer.from(teamText(lines)).toString('base64') }]
    await this.ok('teams/publish', { files })
    await this.ok('realms/add_team', { realm_id: this.realm, team: TEAM })
    const minted = { type: 'realm', name: 'day', realm_ids: [this.realm] }
    this.#realmToken = (await this.ok('auth/generate_token', minted)).token
    // The command of the team leaves its mark outside, and the bucket is on this machine.
    const settings = 'packages: { sandbox: none }\nnetwork: { allow: [127.0.0.1] }\n'
    for (let at = 0; at < DAEMONS; at++) {
      const home = (at === 0 && daemonHome) || folder()
      writeFileSync(join(home, 'settings.yml'), settings, { mode: 0o600 })
      this.daemons.push({ home, env: at === 0 ? firstDaemon : {}, port: freePort(), program: null })
      await this.startDaemon(at)
    }
  }

  /** What `/ready` of a hub says besides that it is ready. */
  async ready(at: number): Promise<string[]> {
    const name = `hub-${at + 1}`
    const asked = ['', '?for=writes'].map(async query => {
      const url = `http://127.0.0.1:${this.hubs[at]!.port}/ready${query}`
      const reply = await fetch(url, { signal: AbortSignal.timeout(4_000) }).catch(() => null)
      if (reply === null) return [`${name} does not answer`]
      const { data, error } = (await reply.json()) as { data?: Record<string, unknown>; error?: { message: string } }
      if (error) return [`${name} ${reply.status}: ${error.message}`]
      const { status, ...besides } = data!
      return Object.keys(besides).length === 0 ? [] : [`${name} ${reply.status}: ${JSON.stringify(besides)}`]
    })
    return [...new Set((await Promise.all(asked)).flat())]
  }

  /** What `cadre status` says of the hub and of what needs somebody, on the machine of the first daemon. */
  async status(): Promise<string[]> {
    const words = [process.execPath, join(this.tree, 'daemon.ts'), 'status']
    const child = Bun.spawn(words, { env: this.#daemonEnv(0), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    const [said, failed] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    const lines = `${said}${failed}`.split('\n')
    return lines.filter(line => /^(!|hub |error)/.test(line) && !line.endsWith(', linked'))
  }

  /** What the page of the first daemon says of its hub and of itself. */
  async page(): Promise<string[]> {
    const { home, port } = this.daemons[0]!
    const token = readFileSync(join(home, 'token'), 'utf8').trim()
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const ask = async (path: string, init: RequestInit) => {
      const reply = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, signal: AbortSignal.timeout(4_000) })
      return ((await reply.json()) as Answer).data
    }
    try {
      const link = await ask('/v1/daemon/hub', { method: 'POST', headers, body: '{}' })
      const { stalled } = await ask('/health', { headers })
      const troubles = (link?.troubles ?? []).map(({ error }: { error: string }) => error)
      return [
        ...troubles,
        ...(link?.waiting?.files?.error ? [link.waiting.files.error] : []),
        ...(stalled ? [stalled] : []),
      ]
    } catch {
      return ['the page does not answer']
    }
  }

  async metric(at: number, name: string): Promise<number | null> {
    const reply = await fetch(`http://127.0.0.1:${this.daemons[at]!.port}/metrics`).catch(() => null)
    const found = new RegExp(`^${name} (\\S+)$`, 'm').exec((await reply?.text()) ?? '')?.[1]
    return found === undefined ? null : Number(found)
  }

  async #close(): Promise<void> {
    await Promise.all(this.daemons.map(({ program }) => program?.stop()))
    await Promise.all(this.hubs.map(({ program }) => program?.stop('SIGKILL')))
    await this.stopProxy()
  }
}
