// The real engine without a daemon, with its own home and agents that the test defines.

import type { Database } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import exec from '../../agents/exec.ts'
import { growLog, openRunDatabase, readMigrations } from '../../db/open.ts'
import { createContext } from '../../lib/agent/context.ts'
import type { Agent } from '../../lib/agent/define.ts'
import { Mask } from '../../lib/daemon/access/mask.ts'
import { processesFolder } from '../../lib/daemon/home/home.ts'
import { logLine } from '../../lib/daemon/runs/engine-host.ts'
import { CadreError } from '../../lib/error.ts'
import type { JsonObject } from '../../lib/json.ts'
import { createLog } from '../../lib/log/log.ts'
import { Engine, type EngineOptions, RootSecrets, type StartRequest } from '../../lib/run/engine.ts'
import { bundleFromJson, type FileMap, inputsFor, loadBundle } from '../../lib/team/team.ts'
import { copyBegun } from './begun.ts'
import { folder } from './folder.ts'
import { endLeftIn, watchHome } from './left.ts'

export interface TestEngine {
  engine: Engine
  db: Database
  home: string
  /**
   * Reads and checks a team, given as team.yml texts by path (the root is `team.yml`). It can be started any number of
   * times.
   */
  prepare(
    files: Record<string, string> | string,
    inputs?: JsonObject,
  ): Promise<(request?: Partial<StartRequest>) => ReturnType<Engine['start']>>
  /** Reads, checks and starts a team. */
  start(
    files: Record<string, string> | string,
    inputs?: JsonObject,
    request?: Partial<StartRequest>,
  ): ReturnType<Engine['start']>
  /** Starts a team and waits until the run has ended. */
  run(files: Record<string, string> | string, inputs?: JsonObject): ReturnType<Engine['start']>
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export async function testEngine(
  options: {
    agents?: Record<string, Agent>
    /** Settings by agent. */
    settings?: Record<string, Record<string, unknown>>
    /** Named secrets. */
    secrets?: Record<string, string>
    slots?: number
    /** Opens the database as a serving daemon does. */
    grown?: boolean
    /** The settling time of all actions in milliseconds; default 20. With null each has its own. */
    settle?: number | null
    bootClock?: EngineOptions['bootClock']
    /** Maximum number of milliseconds for a listener. */
    deliveryTimeout?: number
    home?: string
    now?: () => number
    lived?: () => number
    paceClock?: EngineOptions['paceClock']
    outbox?: EngineOptions['outbox']
    onFail?: EngineOptions['onFail']
  } = {},
): Promise<TestEngine> {
  const home = options.home ?? folder()
  const agents: Record<string, Agent> = { exec, ...options.agents }
  const file = join(home, 'daemon.db')
  const migrations = await readMigrations(join(import.meta.dir, '../../db/daemon/migrations'))
  copyBegun('daemon.db', file)
  const db = openRunDatabase(file, migrations)
  if (options.grown) await growLog(db, file)
  const secrets = new RootSecrets(home)
  const log = createLog({ level: 'error' })
  const mask = new Mask(() => [], log)
  const engine = new Engine({
    home,
    db,
    log,
    slots: options.slots ?? 64,
    settle: () => (options.settle === null ? undefined : (options.settle ?? 20)),
    ...(options.bootClock && { bootClock: options.bootClock }),
    ...(options.deliveryTimeout !== undefined && { deliveryTimeout: options.deliveryTimeout }),
    ...(options.now && { now: options.now }),
    ...(options.lived && { lived: options.lived }),
    ...(options.paceClock && { paceClock: options.paceClock }),
    ...(options.outbox && { outbox: options.outbox }),
    ...(options.onFail && { onFail: options.onFail }),
    secrets,
    host: {
      async agent(reference) {
        const definition = agents[reference]
        if (!definition) throw new CadreError('invalid_request', `no agent ${reference}`)
        return { definition, settings: options.settings?.[reference] ?? {} }
      },
      async account(reference) {
        throw new CadreError('invalid_request', `no account ${reference}`)
      },
      context: (place, binding, hooks) =>
        createContext({
          agent: binding.agent,
          action: binding.action,
          settings: binding.settings,
          network: { allow: ['127.0.0.1'], literalOrigins: [] },
          redactor: mask.redactor(secrets.values(place.rootId)),
          signal: binding.signal,
          log: (text, fields) => place.log(logLine(text, fields)),
          stateDir: place.stateDir,
          workspace: place.workspace,
          processes: processesFolder(home),
          outside: place.fromPath,
          sameTree: place.sameTree,
          unwritten: place.unwritten,
          get key() {
            return binding.key
          },
          attempt: place.attempt,
          run: { ...place.run, url: null },
          phase: place.phase,
          effect: binding.effect,
          ...hooks,
        }),
      mask: (value, known) => mask.redactor(known).json(value),
      async secret(name) {
        const value = options.secrets?.[name]
        if (value === undefined) throw new CadreError('invalid_request', `no secret ${name}`)
        return value
      },
      restoreBundle: (_, json) => bundleFromJson(json),
      leadsTo: async () => ({ phases: [], writes: [] }),
    },
  })
  watchHome(home)
  await endLeftIn(home)
  await engine.recover()
  const lookup = { get: (name: string) => agents[name], names: () => Object.keys(agents) }
  const prepare: TestEngine['prepare'] = async (files, inputs = {}) => {
    const map: FileMap = new Map(Object.entries(typeof files === 'string' ? { 'team.yml': files } : files))
    const bundle = await loadBundle(map, { agents: lookup })
    const { values, problems } = inputsFor(bundle.team(bundle.root).inputs, inputs)
    if (problems.length > 0) throw new CadreError('invalid_request', 'inputs', { details: problems })
    return request => engine.start({ bundle, inputs: values, ...request })
  }
  const start: TestEngine['start'] = async (files, inputs, request) => (await prepare(files, inputs))(request)
  const close = async () => {
    await engine.stop()
    await endLeftIn(home)
    db.close()
    // Removed here and not only at the end of the tests, because some tests make thousands of homes, and the bench is
    // not a test.
    if (!options.home) rmSync(home, { recursive: true, force: true })
  }
  return {
    engine,
    db,
    home,
    prepare,
    start,
    run: async (files, inputs) => engine.ended((await start(files, inputs)).run_id),
    close,
    [Symbol.asyncDispose]: close,
  }
}
