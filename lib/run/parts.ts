// Puts the folders of lib/run together: makes every part of an engine, and gives each part what it needs of the others.

import type { Database } from 'bun:sqlite'
import type { SmallFile } from '../agent/files.ts'
import { type Identity, identityIn } from '../agent/identity.ts'
import type { RunId } from '../files/run-id.ts'
import type { Log } from '../log/log.ts'
import {
  Attempts,
  CopiedWrites,
  DeliverySender,
  DiskSpace,
  LaterLookups,
  Ledger,
  type PaceClock,
  Paces,
  type RootSecrets,
  RunFolders,
  RunLogs,
  recordEvent,
  sealLabel,
  Tasks,
} from './attempt/attempt.ts'
import { Bundles } from './bundles.ts'
import {
  type Account,
  type BootClock,
  type EngineHost,
  type LogLine,
  type Meter,
  machineBootClock,
} from './core/core.ts'
import {
  AfterCommit,
  AfterRun,
  DueTimer,
  KeyTurns,
  Launcher,
  type Outbox,
  PhaseFolders,
  ReviewNexts,
} from './effects/effects.ts'
import { FilesBehind, Seal, SmallFileSync } from './files/files.ts'
import { journalHooks } from './journal-hooks.ts'
import { copiesText, deliveryChanged, Machine, receiptChanged } from './steps/steps.ts'
import { Journal, Lived, Store } from './store/store.ts'
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
  /** The clock by which limits let entries begin; default that of this process. */
  paceClock?: PaceClock
  /** Maximum number of milliseconds for one delivery of a listener; default 60,000. */
  deliveryTimeout?: number
  now?: () => number
  /** How many milliseconds this process has lived; default those by lived-time.ts. */
  lived?: () => number
  /** Who is told of a top run that fails without a listener for that; default nobody. */
  onFail?: () => readonly Account[]
  /** What the changes of synced runs are passed on to. */
  outbox?: Outbox
  /** Who counts what the engine does; default nobody. */
  meter?: Meter
}

const DELIVERY_MS = 60_000

/** The fact up to which row of `small_files` the files are written, if the machine was not rebooted since. */
export const WRITTEN_FACT = 'files_written'

export type Parts = ReturnType<typeof assemble>

/**
 * `isHeld`: whether a top run is being deleted or resumed. No phase begins after `draining` has fired, and no work at all
 * starts after `stopping` has.
 */
export function assemble(
  options: EngineOptions,
  { stopping, draining }: { stopping: AbortSignal; draining: AbortSignal },
  isHeld: (runId: string) => boolean,
) {
  const { db, home, host, log, secrets, outbox, meter } = options
  const now = (): number => options.now?.() ?? Date.now()
  const bootClock = options.bootClock ?? machineBootClock()
  const settle = options.settle ?? (() => undefined)
  const identity = (runId: RunId, position: number, entry: string): Identity =>
    identityIn({
      read: () => {
        const known = store.identities.get(runId, position, entry)
        if (known === null) ledger.noteLackingIdentity(runId, position, entry)
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
  const lived = new Lived(store.facts, options.lived)
  const bundles = new Bundles(store, host)
  const sealer = new Seal(home)
  const followers = new Followers(log)
  const disk: DiskSpace = new DiskSpace(home, log, () => journal.wake())
  const machine: Machine = new Machine(
    store,
    {
      now,
      lived: () => lived.now(),
      random: Math.random,
      bundle: id => bundles.get(id),
      mask: (rootId, value) => host.mask(value, secrets.values(rootId)),
      secretInputs: rootId => secrets.read(rootId),
      stateDir: stateDirOf,
      executing: (runId, position, attempt) => attempts.has(runId, position, attempt),
      settling: (runId, position, attempt) => attempts.isSettling(runId, position, attempt),
      paced: (runId, position, attempt) => attempts.isPaced(runId, position, attempt),
      draining: () => draining.aborted,
      paused: () => stopping.aborted || draining.aborted || disk.low !== null || behind.isStalled,
      followed: () => followers.any,
      hasUnwritten: rootId => behind.has(rootId),
      wakeAt: at => dueTimer.wakeAt(at),
      event: (live, event, position, asks) =>
        recordEvent(machine, live, { event, position, asks }, options.onFail?.() ?? []) > 0,
    },
    options.slots,
  )
  const hooks = journalHooks(machine, outbox, lived, log, () => afterCommit.committed())
  const journal: Journal = new Journal(db, hooks, log)
  const common = { machine, journal, followers, outbox, stopping, log }

  const logs: RunLogs = new RunLogs(stateDirOf, (runId, lines) => passOn(runId, lines), options.logLimit)
  const behind = new FilesBehind({
    stateDirOf,
    tell: seq => write(() => store.facts.set(WRITTEN_FACT, `${seq}`)),
    recovered: () => journal.wake(),
    log,
  })
  const runFolders: RunFolders = new RunFolders(home, store, behind, (row, phase) => ({
    log: line => logs.append(row.id, { phase, at: now(), ...line }),
    room: {
      get isFull() {
        return logs.isFull(row.id)
      },
      skip: (lines, bytes) => logs.skip(row.id, phase, lines, bytes),
    },
  }))
  const ledger: CopiedWrites = new CopiedWrites({
    ...{ store, write, now, changed },
    ledger: new Ledger({
      ...{ store, write, now, bootClock, settle, changed },
      seal: ({ runId, position, entry, call }) => sealer.close(sealLabel({ run_id: runId, position, entry }), call()),
      lookupKept: () => lookups.noteKept(),
    }),
  })
  const lookups: LaterLookups = new LaterLookups({
    ...{ store, host, context: host.context, identity, write, now, bootClock, settle, changed, stopping, log },
    environment: (row, position) => {
      const from = bundles.get(row.bundle_id)
      return runFolders.of({ row, bundle: from, inputs: {} }, from.team(row.team_key).phases[position]!.name, 1)
    },
    open: (label, sealed) => sealer.open(label, sealed),
    mask: (rootId, value) => host.mask(value, rootId === undefined ? [] : secrets.values(rootId)),
  })
  const attempts: Attempts = new Attempts({
    machine,
    host,
    ledger,
    runFolders,
    secrets: rootId => secrets.values(rootId),
    seal,
    behind,
    write: (root, apply) => journal.write({ root, apply }),
    identity,
    paces: new Paces(options.paceClock),
    meter,
  })
  const messenger = new DeliverySender({
    store,
    host,
    environment: ({ run_id, listener }) => {
      const run = store.runs.get(run_id)!
      // An account of the settings is no phase: its lines are those of `notify`.
      const [phase = ''] = listener.split('.', 1)
      const isApproved = run.review === null || store.reviews.isStartApproved(run_id)
      // What its environment has is for runs that somebody approved. The message that it waits has the plain settings.
      const row = isApproved ? run : { ...run, environment: null }
      return runFolders.of({ row, bundle: bundles.get(run.bundle_id), inputs: {} }, phase, 1)
    },
    context: host.context,
    mask: (runId, value) => host.mask(value, secrets.values(store.runs.get(runId)!.root_id)),
    write,
    settled: runId => deliveryChanged(machine, runId),
    timeout: options.deliveryTimeout ?? DELIVERY_MS,
    copies: async runId => {
      if (!lookups.any) return ''
      const run = store.runs.get(runId)!
      await lookups.lookUpEnded(run)
      return copiesText(store, run, row => bundles.get(row.bundle_id).team(row.team_key).phases)
    },
  })
  const tasks = new Tasks({
    machine,
    seal,
    behind,
    stopping,
    write: (root, apply) => journal.write({ root, apply }),
  })
  const folders = new PhaseFolders({ ...common, tasks, runFolders })
  const afterRun = new AfterRun({
    ...common,
    store,
    logs,
    messenger,
    looks: lookups,
    secrets,
    isHeld: runId => isHeld(runId),
  })
  const launcher = new Launcher({ ...common, attempts, logs })
  const afterCommit = new AfterCommit({
    ...common,
    launcher,
    attempts,
    folders,
    nexts: new ReviewNexts({ ...common, host }),
    messenger,
    afterRun,
    keyTurns: new KeyTurns(common),
    meter,
    say: (runId, phase, text) => logs.append(runId, { phase, at: now(), stream: 'log', text }),
  })
  const dueTimer: DueTimer = new DueTimer(machine, journal, lived, log)
  const smallFileSync = new SmallFileSync({
    ...{ db, write, stateDirOf, log },
    now: () => lived.now(),
    isUnwritten: (runId, path) => behind.isUnwritten(runId, path),
  })

  function passOn(runId: RunId, lines: readonly LogLine[]): void {
    const live = machine.lives.get(runId)
    // A listener may write to the log of a run that has ended.
    const rootId = live?.root ?? (followers.any ? store.runs.get(runId)?.root_id : undefined)
    if (rootId !== undefined) followers.notify({ rootId, runId, kind: 'log', position: null, lines })
    if (live?.row.synced) outbox?.logGrew(runId, lines.at(-1)!.seq)
  }

  return {
    ...{ store, logs, machine, journal, attempts, messenger, folders, afterRun, dueTimer },
    ...{ looks: lookups, followers, runFolders, disk, behind, smallFileSync, sealer, bundles, bootClock, lived },
  }
}
