// Carries out what the units of a group noted, after the group is durable: their effects, in the order in which they
// were noted, and the notices for followers. An effect that throws is logged and does not prevent the others.

import type { RunId } from '../../files/run-id.ts'
import type { Log } from '../../log/log.ts'
import type { MaskedText } from '../../secrets/masked.ts'
import type { Attempts, DeliverySender } from '../attempt/attempt.ts'
import type { Meter } from '../core/core.ts'
import { type Change, type Effect, type Machine, textOf } from '../steps/steps.ts'
import type { Followers } from '../views/views.ts'
import type { AfterRun } from './after-run.ts'
import type { KeyTurns } from './key-turns.ts'
import type { Launcher } from './launcher.ts'
import type { Outbox } from './outbox.ts'
import type { PhaseFolders } from './phase-folders.ts'
import type { ReviewNexts } from './review-nexts.ts'

interface Parts {
  machine: Machine
  launcher: Launcher
  attempts: Attempts
  folders: PhaseFolders
  nexts: ReviewNexts
  messenger: DeliverySender
  afterRun: AfterRun
  keyTurns: KeyTurns
  /** Writes a line into the log of a phase. */
  say: (runId: RunId, phase: string, text: MaskedText) => void
  followers: Followers
  outbox: Outbox | undefined
  meter: Meter | undefined
  log: Log
}

export class AfterCommit {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Never throws. */
  readonly committed = (): void => {
    const { machine, log } = this.#parts
    const { effects, changes } = machine.takeCommitted()
    for (const effect of effects) {
      try {
        this.#do(effect)
      } catch (error) {
        log.error('an effect failed', { effect: effect.kind, error: textOf(error) })
      }
    }
    try {
      this.#notifyFollowers(changes)
    } catch (error) {
      log.error('followers could not be notified of changes', { error: textOf(error) })
    }
  }

  #do(effect: Effect): void {
    const { machine, launcher, attempts, folders, nexts, messenger, afterRun, keyTurns, say, meter } = this.#parts
    switch (effect.kind) {
      case 'launch':
        return launcher.launch(effect)
      case 'abort':
        return attempts.abort(effect.runId, effect.position, effect.attempt)
      case 'limit':
        return attempts.limit(effect.runId, effect.position, effect.attempt, effect.ms)
      case 'task':
        return folders.runTask(effect.task)
      case 'clear':
        return folders.clearFolder(effect)
      case 'key':
        return keyTurns.startNext(effect.key)
      case 'say':
        return say(effect.runId, effect.phase, effect.text)
      case 'next':
        return nexts.find(effect.runId, effect.position)
      case 'deliver':
        return messenger.send(effect.runId)
      case 'phase':
        return meter?.phaseEnded(effect.agent, effect)
      case 'ended':
        machine.queued.delete(effect.runId)
        if (effect.runId === effect.root) this.#countEnd(effect)
        return afterRun.completeEnd(effect.runId, effect.root, effect.settled)
    }
  }

  #countEnd({ runId, counted }: Extract<Effect, { kind: 'ended' }>): void {
    const { meter, machine } = this.#parts
    const run = meter && (counted ?? machine.store.runs.counted(runId))
    if (run) meter.runEnded(run)
  }

  #notifyFollowers(changes: readonly Change[]): void {
    const { followers, outbox } = this.#parts
    if (changes.some(({ run }) => run.synced)) outbox?.committed()
    if (!followers.any) return
    for (const { run, position, kind } of changes) {
      if (kind === 'receipt' || kind === 'delivery') continue
      followers.notify({ rootId: run.root_id, runId: run.id, kind, position })
    }
  }
}
