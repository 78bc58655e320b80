// What a serving daemon does by itself, besides executing runs and answering calls: once at its start, or at intervals.

import { messageOf } from '../../../error.ts'
import type { Daemon } from '../../runs/daemon.ts'
import { copiedText } from '../copied-home.ts'
import { deleteOldEntries, type Retention, RunRetention } from './retention.ts'

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
      name: 'load_agents',
      begins: 'ready',
      // The first requests are not delayed by agents that they do not use.
      afterMs: 1_000,
      everyMs: null,
      failure: 'the agents could not be loaded',
      run: () => loadAgents(daemon),
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
      name: 'delete_audit_entries',
      begins: 'ready',
      everyMs: HOUR_MS,
      failure: 'old audit entries could not be deleted',
      run: signal => deleteOldEntries(daemon, retention, signal),
    },
    {
      name: 'delete_runs',
      begins: 'ready',
      everyMs: HOUR_MS,
      failure: 'old runs could not be deleted',
      run: signal => runs.deleteRuns(signal),
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
  'its unfinished runs stay interrupted until a person resumes them, because they may have continued at the other place'

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

/** Loads the agents that no setting and no team has named yet, and logs the files that are not valid agents. */
async function loadAgents(daemon: Daemon): Promise<void> {
  await daemon.catalogue.load()
  daemon.reportSkippedAgents()
}
