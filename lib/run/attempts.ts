// The attempts of leaf phases that this process executes: each runs until it has an outcome, and counts as executed until
// that is recorded. An attempt can be aborted; whether it heeds that is its agent's affair.

import type { GatePhase, StandardPhase } from '../team/team.ts'
import type { EngineHost } from './engine.ts'
import { execute } from './execute.ts'
import type { Outcome } from './host.ts'
import type { Ledger } from './ledger.ts'
import type { LiveRun } from './live.ts'
import type { Places } from './places.ts'
import { scopeOf } from './scope.ts'
import type { RunStore } from './store.ts'
import { limit } from './timers.ts'

interface Parts {
  store: RunStore
  host: Pick<EngineHost, 'agent' | 'context' | 'mask'>
  ledger: Ledger
  places: Places
  /** What of a tree is masked. */
  secrets(rootId: string): readonly string[]
}

export class Attempts {
  readonly #parts: Parts
  readonly #running = new Map<string, AbortController>()
  /** By run and position: what an agent said last, when that was that it waits. */
  readonly #waitNotes = new Map<string, string>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Executes an attempt and gives its outcome to `record`. */
  async run(live: LiveRun, position: number, attempt: number, record: (outcome: Outcome) => Promise<void>) {
    const key = keyOf(live.id, position, attempt)
    const controller = new AbortController()
    this.#running.set(key, controller)
    await record(await this.#perform(live, position, attempt, controller))
    this.#running.delete(key)
  }

  has(runId: string, position: number, attempt: number): boolean {
    return this.#running.has(keyOf(runId, position, attempt))
  }

  abort(runId: string, position: number, attempt: number): void {
    this.#running.get(keyOf(runId, position, attempt))?.abort()
  }

  /** What the agent of a phase says that it waits for. */
  note(runId: string, position: number): string | undefined {
    return this.#waitNotes.get(`${runId}:${position}`)
  }

  abortAll(reason: Error): void {
    for (const controller of this.#running.values()) controller.abort(reason)
  }

  /** Resolves when none runs any more, or at `deadline` (of `performance.now()`). */
  async idle(deadline: number): Promise<void> {
    while (this.#running.size > 0 && performance.now() < deadline) await Bun.sleep(20)
  }

  async #perform(live: LiveRun, position: number, attempt: number, controller: AbortController): Promise<Outcome> {
    const { store, host, ledger, places } = this.#parts
    const phase = live.phase(position) as StandardPhase | GatePhase
    const secrets = this.#parts.secrets(live.row.root_id)
    const mask = <T>(value: T): T => host.mask(value, secrets)
    const place = places.of(live, phase.name, attempt)
    const { log } = place
    const spot = `${live.id}:${position}`
    place.log = line => {
      if (line.text.startsWith('waiting: ')) this.#waitNotes.set(spot, mask(line.text.slice(9)))
      else this.#waitNotes.delete(spot)
      log(line)
    }
    const lift = limit(controller, phase.timeout)
    const scope = scopeOf({ store }, live)
    try {
      return await execute(
        { runId: live.id, position, attempt, phase, scope, signal: controller.signal },
        {
          agent: host.agent,
          context: binding => host.context(place, binding),
          ledger,
          stateDir: place.stateDir,
          makeWorkspace: () => places.makeWorkspace(live.row),
          mask,
        },
      )
    } finally {
      this.#waitNotes.delete(spot)
      lift()
    }
  }
}

const keyOf = (runId: string, position: number, attempt: number): string => `${runId}:${position}:${attempt}`
