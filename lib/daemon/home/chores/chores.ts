// What a serving daemon does by itself, besides executing runs and answering calls: once at its start, or at intervals.

import { messageOf } from '../../../error.ts'
import type { Daemon } from '../../runs/daemon.ts'
import { finishDeletions } from '../../runs/delete-tree.ts'
import { tick } from '../../triggers/tick.ts'
import { Triggers } from '../../triggers/triggers.ts'
import { Watches } from '../../triggers/watches.ts'
import { copiedText } from '../copied-home.ts'
import { freeDeleted, type Retention, RunRetention } from './retention.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

interface Chore {
  name: string
  /** Whether it begins with the home, before its runs continue, or when everything is ready to serve. */
  begins: 'opened' | 'ready'
  /** How much later it runs for the first time; absent: at once. */
  afterMs?: number
  /** Null: once only. */
  everyMs: number | null
  /** The message of the log when it fails. */
  failure: string
  run(signal: AbortSignal): unknown
  /** Calls `run` at other times, too. Returns what ends that. */
  watch?(run: () => void): () => void
}

function choresOf(daemon: Daemon, retention: Retention): readonly Chore[] {
  const runs = new RunRetention(daemon, retention)
  const triggers = new Triggers(daemon)
  const watches = new Watches(daemon, triggers)
  return [
    {
      name: 'report_unknown_settings',
      begins: 'opened',
      everyMs: null,
      failure: 'the settings could not be checked',
      run: () => daemon.reportUnknownSettings(),
    },
    {
      name: 'report_copied_home',
      begins: 'opened',
      everyMs: null,
      failure: 'it is not known whether this home was copied',
      run: () => reportCopy(daemon),
    },
    {
      name: 'report_sandboxes',
      begins: 'opened',
      everyMs: null,
      failure: 'the sandboxes could not be tried',
      run: () => reportSandboxes(daemon),
    },
    {
      name: 'check_agents',
      begins: 'ready',
      // The first requests are not delayed by agents that they do not use.
      afterMs: 1_000,
      everyMs: null,
      failure: 'the agents could not be loaded',
      run: () => checkAgents(daemon),
    },
    {
      name: 'index_searches',
      begins: 'ready',
      everyMs: 1_000,
      failure: 'the index of searches could not be filled',
      run: () => daemon.reads.fillWhenDue(),
    },
    {
      name: 'look_at_triggers',
      begins: 'ready',
      everyMs: 1_000,
      failure: 'the triggers could not be looked at',
      run: () => tick(daemon, triggers),
    },
    {
      name: 'look_at_folders',
      begins: 'ready',
      everyMs: 500,
      failure: 'the folders of watches could not be looked at',
      run: () => watches.begin(),
      watch: run => watches.listen(run),
    },
    {
      name: 'tell_accounts',
      begins: 'ready',
      everyMs: 1_000,
      failure: 'the accounts of notify.on_fail could not be told',
      run: () => daemon.tells.sendAll(),
    },
    {
      name: 'shrink_memory',
      begins: 'ready',
      everyMs: 10_000,
      failure: 'the cache of the database could not be emptied',
      run: () => shrinkMemory(daemon),
    },
    {
      name: 'seal_audit_entries',
      begins: 'ready',
      // Entries are sealed soon after they were written. This seals those of a process that was killed before.
      everyMs: MINUTE_MS,
      failure: 'audit entries could not be sealed',
      run: () => daemon.audit.sealAll(),
    },
    {
      name: 'delete_old',
      begins: 'ready',
      // The wall clock is looked at this often; old runs and audit entries are deleted once in an hour of life.
      everyMs: MINUTE_MS,
      failure: 'old runs and audit entries could not be deleted',
      run: signal => runs.deleteOld(signal),
    },
    {
      name: 'finish_deletions',
      begins: 'ready',
      everyMs: HOUR_MS,
      failure: 'deletions that had begun could not be finished',
      run: signal => finishDeletions(daemon, signal),
    },
    {
      name: 'free_space',
      begins: 'ready',
      everyMs: HOUR_MS,
      failure: 'the space of deleted runs could not be freed',
      run: signal => freeDeleted(daemon, signal),
    },
    {
      name: 'delete_beyond_limit',
      begins: 'ready',
      everyMs: HOUR_MS,
      failure: 'runs beyond the limit of space could not be deleted',
      run: signal => runs.deleteBeyondLimit(signal),
      watch: run => runs.onRunEnd(run),
    },
  ]
}

export class Chores {
  readonly #daemon: Daemon
  readonly #all: readonly Chore[]
  readonly #ended = new AbortController()
  readonly #ends: (() => void)[] = []

  constructor(daemon: Daemon, retention: Retention) {
    this.#daemon = daemon
    this.#all = choresOf(daemon, retention)
  }

  /** Starts the chores that begin now. */
  start(now: Chore['begins']): void {
    for (const chore of this.#all) {
      if (chore.begins === now) this.#ends.push(startChore(chore, this.#daemon, this.#ended.signal))
    }
  }

  stop(): void {
    this.#ended.abort()
    for (const end of this.#ends) end()
  }
}

/** A chore that is due while it runs is run again afterwards. */
function startChore({ name, afterMs, everyMs, failure, run, watch }: Chore, { log }: Daemon, signal: AbortSignal) {
  const runOnce = async () => {
    if (signal.aborted) return
    try {
      await run(signal)
    } catch (error) {
      if (!signal.aborted) log.warn(failure, { chore: name, error: messageOf(error) })
    }
  }
  let running = afterMs === undefined ? runOnce() : Promise.resolve()
  const runNext = () => {
    running = running.then(runOnce)
  }
  const first = afterMs === undefined ? undefined : setTimeout(runNext, afterMs)
  const timer = everyMs === null ? undefined : setInterval(runNext, everyMs)
  const unwatch = watch?.(runNext)
  return () => {
    clearTimeout(first)
    clearInterval(timer)
    unwatch?.()
  }
}

const HELD_BACK =
  'its unfinished runs stay interrupted until a person resumes them, because the original home may have continued them'

/** Logs that this home is a copy, until no run waits for a person any more. */
function reportCopy({ copied, log }: Daemon): void {
  if (copied && copied.runs > 0) log.warn(copiedText(copied), { runs: copied.runs, next: HELD_BACK })
}

/** Logs where commands do not run in the sandbox that the owner chose, or without a choice would want. */
async function reportSandboxes({ sandboxes, log }: Daemon): Promise<void> {
  const found = await Promise.all([sandboxes.choose(false), sandboxes.choose(true)])
  const texts = found.flatMap(({ fails, warning }) => fails ?? warning ?? [])
  for (const text of new Set(texts)) log.warn('sandbox', { message: text })
}

/** Empties the cache of the database when nothing runs. What the next run needs is read from the cache of the system. */
function shrinkMemory({ db, engine }: Daemon): void {
  if (engine.load.runs === 0) db.run('PRAGMA shrink_memory')
}

/** Logs the files that are not valid agents. Those of cadre are valid, and are loaded when somebody asks for them. */
async function checkAgents(daemon: Daemon): Promise<void> {
  const { catalogue } = daemon
  await catalogue.load(catalogue.ownNames())
  daemon.reportSkippedAgents()
}
