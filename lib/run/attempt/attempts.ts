// The attempts of leaf phases that this process executes. An attempt counts as executed until its outcome is recorded.
// It can be aborted; when its agent ignores that, the attempt ends without the agent.

import type { SmallFile } from '../../agent/files.ts'
import type { Identity } from '../../agent/identity.ts'
import type { RunId } from '../../files/run-id.ts'
import type { Masked, MaskedText } from '../../secrets/masked.ts'
import type { KnownSecret } from '../../secrets/redact.ts'
import type { GatePhase, StandardPhase } from '../../team/team.ts'
import type { EngineHost, LiveRun, Meter } from '../core/core.ts'
import type { AttemptFiles, FilesBehind } from '../files/files.ts'
import { CLEANUP_MS, type Machine, type Outcome, scopeOf } from '../steps/steps.ts'
import { AttemptClock } from './attempt-clock.ts'
import { type Running, type Wait, waitsOf } from './attempt-waits.ts'
import { execute } from './execute.ts'
import type { Ledger } from './ledger.ts'
import type { Paces } from './paces.ts'
import { PrintedEnd } from './printed.ts'
import type { RunFolders } from './run-folders.ts'

interface Parts {
  machine: Machine
  host: EngineHost
  ledger: Pick<Ledger, 'once'>
  runFolders: RunFolders
  /** The texts that are masked in a tree. */
  secrets(rootId: RunId): readonly KnownSecret[]
  /** Encrypts a small file for the database. */
  seal(runId: RunId, file: SmallFile): SmallFile
  behind: FilesBehind
  /** Applies a change to a tree; the promise settles once it is on disk. */
  write<T>(root: RunId, apply: () => T): Promise<T>
  /** The id by which the vendor knows an entry, kept in the database. */
  identity(runId: RunId, position: number, entry: string): Identity
  paces: Paces
  meter: Meter | undefined
}

export class Attempts {
  readonly #parts: Parts
  readonly #running = new Map<string, Running>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Executes an attempt and passes its outcome to `record`. Throws only what `record` throws. */
  async run(
    live: LiveRun,
    position: number,
    attempt: number,
    record: (outcome: Outcome, files: AttemptFiles) => Promise<void>,
  ) {
    const key = keyOf(live.id, position, attempt)
    const controller = new AbortController()
    const phase = live.phase(position)
    const stop = new AbortController()
    const clock = new AttemptClock(controller, phase.timeout ?? (live.ending ? CLEANUP_MS : undefined))
    const running: Running = {
      controller,
      stop,
      clock,
      settling: null,
      pacing: null,
      repeating: new Set(),
      waits: [],
      endSlotWait() {},
    }
    this.#running.set(key, running)
    const isLive = () => this.#running.get(key) === running
    const files = this.#parts.behind.of(live.root, live.id, phase.name, isLive)
    try {
      const outcome = await this.#perform(live, position, attempt, running, files)
      running.clock.stop('end')
      if (outcome.kind !== 'completed') files.drop()
      await record(outcome, files)
    } finally {
      files.drop()
      this.#running.delete(key)
    }
  }

  has(runId: string, position: number, attempt: number): boolean {
    return this.#running.has(keyOf(runId, position, attempt))
  }

  abort(runId: string, position: number, attempt: number): void {
    const running = this.#running.get(keyOf(runId, position, attempt))
    if (running) abort(running)
  }

  /** Aborts every attempt for which `of` returns true. */
  abortRuns(of: (runId: string, position: number) => boolean): void {
    for (const [key, running] of this.#running) {
      const [runId, position] = key.split(':') as [string, string]
      if (of(runId, Number(position))) abort(running)
    }
  }

  /** Gives an attempt at most `ms` from now. */
  limit(runId: string, position: number, attempt: number, ms: number): void {
    const running = this.#running.get(keyOf(runId, position, attempt))
    if (running) running.clock = running.clock.replace(ms)
  }

  /** Whether an attempt has given its slot back, because it waits for another system to settle. */
  isSettling(runId: string, position: number, attempt: number): boolean {
    return (this.#running.get(keyOf(runId, position, attempt))?.settling ?? null) !== null
  }

  /** Whether an attempt has given its slot back, because a limit does not let its next entry begin. */
  isPaced(runId: string, position: number, attempt: number): boolean {
    return (this.#running.get(keyOf(runId, position, attempt))?.pacing ?? null) !== null
  }

  /** The attempts that execute something now: they wait for no other system to settle, and for no limit. */
  get atWork(): { runId: string; position: number }[] {
    return [...this.#running]
      .filter(([, { settling, pacing }]) => settling === null && pacing === null)
      .map(([key]) => key.split(':') as [string, string])
      .map(([runId, position]) => ({ runId, position: Number(position) }))
  }

  /** What a phase waits for. If there are several waits, the latest one. */
  note(runId: string, position: number, attempt: number): Wait | undefined {
    const { settling, pacing, repeating, waits } = this.#running.get(keyOf(runId, position, attempt)) ?? {}
    const wait = settling ?? pacing ?? repeating?.values().next().value
    if (wait) return wait
    const now = Date.now()
    return waits?.findLast(({ until }) => until === undefined || until.getTime() > now)
  }

  abortAll(reason: Error): void {
    for (const running of this.#running.values()) abort(running, reason)
  }

  /** Resolves when no attempt is executed any more, or at `deadline` (in `performance.now()` time). */
  async idle(deadline: number): Promise<void> {
    while (this.#running.size > 0 && performance.now() < deadline) await Bun.sleep(20)
  }

  async #perform(
    live: LiveRun,
    position: number,
    attempt: number,
    running: Running,
    files: AttemptFiles,
  ): Promise<Outcome> {
    const { controller, stop } = running
    const { machine, host, ledger, runFolders } = this.#parts
    const phase = live.phase(position) as StandardPhase | GatePhase
    const secrets = this.#parts.secrets(live.root)
    const mask = <T>(value: T): Masked<T> => host.mask(value, secrets)
    const environment = runFolders.of(live, phase.name, attempt)
    const { log, room } = environment
    const isLive = () => this.has(live.id, position, attempt)
    const printed = phase.type === 'gate' && phase.review ? new PrintedEnd() : null
    environment.log = line => {
      // Lines of an agent that continues after its attempt are dropped, because the secrets of its run may be forgotten
      // and the run deleted.
      if (!isLive()) return
      log(line)
      printed?.add(line)
    }
    environment.room = {
      get isFull() {
        return isLive() && room.isFull
      },
      skip(lines, bytes) {
        if (isLive()) room.skip(lines, bytes)
      },
    }
    /** Each call of the agent begins without a wait. */
    const startWaits = () => {
      const waits: Wait[] = []
      running.waits = waits
      return (reason: MaskedText, until: Date | undefined) => {
        const wait = { reason, until }
        waits.push(wait)
        return () => {
          if (waits.includes(wait)) waits.splice(waits.indexOf(wait), 1)
        }
      }
    }
    const outcome = await execute(
      {
        runId: live.id,
        rootId: live.row.root_id,
        environment: live.row.environment,
        position,
        attempt,
        turn: live.phases[position]!.turn?.number ?? 1,
        phase,
        scope: () => scopeOf(machine, live),
        team: live.team,
        reader: environment.team,
        borrower: { name: environment.team.name, fromPath: environment.fromPath },
        signal: controller.signal,
        stopped: stop.signal,
      },
      {
        host,
        context: (binding, hooks) => host.context(environment, binding, { ...hooks, waits: startWaits() }),
        ledger,
        identity: entry => this.#parts.identity(live.id, position, entry),
        stateDir: environment.stateDir,
        get places() {
          return { ...environment, outside: environment.fromPath }
        },
        makeWorkspace: () => runFolders.makeWorkspace(live.row),
        log: text => environment.log({ stream: 'log', text: mask(text) }),
        mask,
        seal: file => this.#parts.seal(live.id, file),
        // A top run ends only when its files are there, so that nothing is won by writing its own files later.
        hold: live.parent === null ? undefined : files.hold,
        flush: environment.unwritten.flush,
        meter: this.#parts.meter,
        ...waitsOf(this.#parts, { live, position, attempt, running, mask }),
      },
    )
    return printed && outcome.kind === 'completed' ? { ...outcome, printed: printed.take() } : outcome
  }
}

function abort({ controller, stop, endSlotWait }: Running, reason?: Error): void {
  controller.abort(reason)
  stop.abort(reason)
  endSlotWait()
}

const keyOf = (runId: string, position: number, attempt: number): string => `${runId}:${position}:${attempt}`
