// Puts the folders of lib/run together: makes every part of an engine and gives it what it needs of the others. The
// engine answers callers with these parts.

import type { Database } from 'bun:sqlite'
import { isDiskError } from '../../db/open.ts'
import type { SmallFile } from '../agent/files.ts'
import { type Identity, identityIn } from '../agent/identity.ts'
import { CadreError } from '../error.ts'
import type { RunId } from '../files/run-id.ts'
import type { Log } from '../log/log.ts'
import { Recent } from '../recent.ts'
import type { Bundle } from '../team/team.ts'
import {
  Attempts,
  CopiedWrites,
  DiskSpace,
  LaterLooks,
  Ledger,
  Messenger,
  type RootSecrets,
  RunFolders,
  RunLogs,
  recordEvent,
  sealLabel,
  Tasks,
} from './attempt/attempt.ts'
import { type BootClock, type EngineHost, type LogLine, machineBootClock } from './core/core.ts'
import { AfterCommit, AfterRun, DueTimer, KeyTurns, Launcher, type Outbox, PhaseFolders } from './effects/effects.ts'
import { Settler } from './files/files.ts'
import { copiesText, errorOf, Machine, receiptChanged, textOf } from './steps/steps.ts'
import { Journal, Seal, Store, type Unit } from './store/store.ts'
import { Followers } from './views/views.ts'

export interface EngineOptions {
  home: string
  db: Database
  host: EngineHost
  secrets: RootSecrets
  log: Log
  /** How many leaf phases may execute at once, over all runs. */
  slots: number
  /** The size of the log of a run in bytes, beyond which lines are counted. */
  logLimit?: number
  /** Milliseconds that replace the settling time of every action, if given. */
  settle?: () => number | undefined
  /** Time that no wall clock changes; default that of this machine. */
  bootClock?: BootClock
  /** Maximum number of milliseconds for one delivery of a listener; default 60,000. */
  deliveryTimeout?: number
  now?: () => number
  /** What the changes of synced runs are passed on to. */
  outbox?: Outbox
}

/** Maximum number of bundles in the cache. Runs that have not ended hold their own. */
const MOST_BUNDLES = 100
const DELIVERY_MS = 60_000

export type Parts = ReturnType<typeof assemble>

/** `isHeld`: whether a top run is being deleted or resumed. Nothing begins after `stopping` has fired. */
export function assemble(options: EngineOptions, stopping: AbortSignal, isHeld: (runId: string) => boolean) {
  const { db, home, host, log, secrets, outbox } = options
  const now = (): number => options.now?.() ?? Date.now()
  const bootClock = options.bootClock ?? machineBootClock()
  const settle = options.settle ?? (() => undefined)
  const identity = (runId: RunId, position: number, entry: string): Identity =>
    identityIn({
      read: () => {
        const known = store.identities.get(runId, position, entry)
        if (known === null) ledger.lacksIdentity(runId, position, entry)
        return known
      },
      keep: value => write(() => store.identities.keep(runId, position, entry, value)),
    })
  const changed = (runId: string, position: number, entry: string) => receiptChanged(machine, runId, position, entry)
  const write = <T>(change: () => T): Promise<T> => journal.write({ root: null, apply: change })
  const stateDirOf = (runId: RunId) => runFolders.stateDir(runId)
  // Files of agents may contain secrets, and the database must not contain a secret in plain text.
  const seal = (runId: RunId, { path, bytes }: SmallFile): SmallFile => ({
    path,
    bytes: sealer.close(`${runId}/${path}`, bytes),
  })

  const store = new Store(db)
  const sealer = new Seal(home)
  const followers = new Followers(log)
  const disk: DiskSpace = new DiskSpace(home, log, () => journal.wake())
  const machine: Machine = new Machine(
    store,
    {
      now,
      random: Math.random,
      bundle: id => bundle(id),
      mask: (rootId, value) => host.mask(value, secrets.values(rootId)),
      secretInputs: rootId => secrets.read(rootId),
      stateDir: stateDirOf,
      executing: (runId, position, attempt) => attempts.has(runId, position, attempt),
      settling: (runId, position, attempt) => attempts.isSettling(runId, position, attempt),
      paused: () => stopping.aborted || disk.low !== null,
      followed: () => followers.any,
      wakeAt: at => alarm.wakeAt(at),
      event: (live, event, position) => recordEvent(machine, live, event, position) > 0,
    },
    options.slots,
  )
  const journal: Journal = new Journal(
    db,
    {
      next: machine.next,
      hasNext: machine.hasNext,
      beforeUnit: machine.beforeUnit,
      afterUnit: machine.afterUnit,
      unitUndone: machine.unitUndone,
      unitFailed: (unit, error) => endTreeOf(machine, unit, error),
      beforeCommit: () => recordInOutbox(machine, options),
      afterCommit: () => afterCommit.committed(),
      afterRollback: machine.groupUndone,
    },
    log,
  )
  const common = { machine: machine, journal: journal, followers: followers, outbox, stopping, log }

  const logs: RunLogs = new RunLogs(stateDirOf, (runId, lines) => passOn(runId, lines), options.logLimit)
  const runFolders: RunFolders = new RunFolders(home, store, (row, phase) => ({
    log: line => logs.append(row.id, { phase, at: now(), ...line }),
    room: {
      get isFull() {
        return logs.isFull(row.id)
      },
      skip: (lines, bytes) => logs.skip(row.id, phase, lines, bytes),
    },
  }))
  const ledger: CopiedWrites = new CopiedWrites({
    ...{ store: store, write, now, changed },
    ledger: new Ledger({
      ...{ store: store, write, now, bootClock, settle, changed },
      seal: ({ runId, position, entry, call }) => sealer.close(sealLabel({ run_id: runId, position, entry }), call()),
      kept: () => looks.kept(),
    }),
  })
  const looks: LaterLooks = new LaterLooks({
    ...{ store, host, context: host.context, identity, write, now, bootClock, settle, changed, stopping, log },
    place: (row, position) => {
      const from = bundle(row.bundle_id)
      return runFolders.of({ row, bundle: from, inputs: {} }, from.team(row.team_key).phases[position]!.name, 1)
    },
    open: (place, sealed) => sealer.open(place, sealed),
    mask: (rootId, value) => host.mask(value, rootId === undefined ? [] : secrets.values(rootId)),
  })
  const attempts: Attempts = new Attempts({
    machine: machine,
    host,
    ledger,
    runFolders,
    secrets: rootId => secrets.values(rootId),
    seal,
    write: (root, apply) => journal.write({ root, apply }),
    identity,
  })
  const messenger = new Messenger({
    store: store,
    host,
    place: ({ run_id, listener }) => {
      const run = store.runs.get(run_id)!
      return runFolders.of({ row: run, bundle: bundle(run.bundle_id), inputs: {} }, listener, 1)
    },
    context: host.context,
    mask: (runId, value) => host.mask(value, secrets.values(store.runs.get(runId)!.root_id)),
    write,
    timeout: options.deliveryTimeout ?? DELIVERY_MS,
    copies: async runId => {
      if (!looks.any) return ''
      const run = store.runs.get(runId)!
      await looks.atEnd(run)
      return copiesText(store, run, row => bundle(row.bundle_id).team(row.team_key).phases)
    },
  })
  const tasks = new Tasks({
    machine: machine,
    seal,
    write: (root, apply) => journal.write({ root, apply }),
  })
  const folders = new PhaseFolders({ ...common, tasks, runFolders })
  const afterRun = new AfterRun({
    ...common,
    store: store,
    logs: logs,
    messenger: messenger,
    looks,
    secrets,
    isHeld: runId => isHeld(runId),
  })
  const launcher = new Launcher({ ...common, attempts: attempts, logs: logs })
  const afterCommit = new AfterCommit({
    ...common,
    launcher,
    attempts: attempts,
    folders: folders,
    messenger: messenger,
    afterRun,
    keyTurns: new KeyTurns(common),
  })
  const alarm: DueTimer = new DueTimer(machine, journal, log)
  const settler = new Settler({ db, write, stateDirOf, now, log })

  function passOn(runId: RunId, lines: readonly LogLine[]): void {
    const live = machine.lives.get(runId)
    // A listener may write to the log of a run that has ended.
    const rootId = live?.root ?? (followers.any ? store.runs.get(runId)?.root_id : undefined)
    if (rootId !== undefined) followers.notify({ rootId, runId, kind: 'log', position: null, lines })
    if (live?.row.synced) outbox?.logGrew(runId, lines.at(-1)!.seq)
  }

  const bundles = new Recent<string, Bundle>(MOST_BUNDLES)
  function bundle(id: string): Bundle {
    const known = bundles.get(id)
    if (known) return known
    const text = store.bundles.get(id)
    if (text === null) throw new CadreError('internal', `bundle ${id} is missing in the run database`)
    return bundles.set(id, host.restoreBundle(id, JSON.parse(text)))
  }

  return {
    ...{ store, logs, machine, journal, attempts, messenger, folders, afterRun, alarm },
    ...{ looks, followers, runFolders, disk, settler, sealer, bundle, bundles, bootClock },
  }
}

/**
 * Called inside the transaction. A change that cannot be put into the outbox is logged and does not delay the others.
 */
function recordInOutbox(machine: Machine, { outbox, log }: EngineOptions): void {
  outbox?.record(machine.changes, ({ run, kind }, error) => {
    if (isDiskError(error)) throw error
    log.error('a change cannot be told to the hub', { run: run.id, kind, error: textOf(error) })
  })
}

/** Called when a change failed twice. Its tree is ended, so that nothing waits for it forever. */
function endTreeOf(machine: Machine, { root }: Unit, thrown: unknown): void {
  if (root === null) return
  const { code, message } = errorOf(thrown)
  const prefix = code === 'internal' ? 'a fault of the engine ended the run: ' : 'the run cannot be continued: '
  machine.abandon(root, { code: 'internal', message: prefix + message, run_id: root })
}
