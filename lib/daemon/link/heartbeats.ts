// The heartbeats of this daemon, which a thread of its own sends (heartbeat.ts). A thread that dies is replaced.

import { backoff } from '../../backoff.ts'
import type { Log } from '../../log/log.ts'
import { thread } from '../../program/install-root.ts'
import { pause } from '../../wait.ts'
import type { Start } from '../../wire/calls/daemon-link.ts'
import type { Bulletin } from '../../wire/protocol.ts'
import type { HeartbeatOrder, HeartbeatReport, HeartbeatSetup } from './heartbeat-thread.ts'

interface Parts {
  url: string
  token: string
  log: Log
  signal: AbortSignal
  /** The program of the thread. */
  program?: string | undefined
  /** What the next heartbeats report, for a thread that has just started. */
  state(): HeartbeatOrder
  /** Which start of the home this is. */
  start: Start
  /** Called when the hub has refused this daemon because a later start of its home has called. */
  moved(message: string): void
  /** Called with each answer of the hub, and by how many milliseconds its clock is ahead. */
  received(bulletin: Bulletin, ahead: number): void
  /** Called when the hub has refused a heartbeat, or did not answer. */
  refused(error: { code: string; message: string }): void
}

export class Heartbeats {
  readonly #parts: Parts
  /** One number, which grows as long as the main thread is at work. */
  readonly #beat = new SharedArrayBuffer(4)
  #worker: Worker | null = null
  #daemonId = ''
  /** How often the thread has died since the last reply of the hub. */
  #deaths = 0
  #timer: Timer | null = null
  /** The last refusal that was logged. */
  #refused: string | null = null

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Starts the thread, or starts it again for another daemon id. */
  start(daemonId: string): void {
    this.#daemonId = daemonId
    this.#worker?.terminate()
    const touch = () => Atomics.add(new Int32Array(this.#beat), 0, 1)
    touch()
    this.#timer ??= setInterval(touch, 1_000)
    const { url, token, start, program = thread('lib/daemon/link/heartbeat-thread.ts') } = this.#parts
    const worker = new Worker(program)
    this.#worker = worker
    worker.onmessage = ({ data }: MessageEvent<HeartbeatReport>) => this.#received(data)
    worker.onerror = ({ message }) => void this.#restart(worker, message)
    worker.addEventListener('close', () => void this.#restart(worker, 'its thread has ended'))
    const setup: HeartbeatSetup = { url, token, daemonId, start, beat: this.#beat }
    this.send({ setup })
    this.send(this.#parts.state())
  }

  send(order: HeartbeatOrder): void {
    this.#worker?.postMessage(order)
  }

  stop(): void {
    this.#worker?.terminate()
    if (this.#timer) clearInterval(this.#timer)
  }

  /** Replaces a thread that has died. Without heartbeats the hub would take this daemon's jobs away. */
  async #restart(dead: Worker, error: string): Promise<void> {
    const { log, signal } = this.#parts
    // An error is followed by the end of the thread, which calls this too.
    if (dead !== this.#worker || signal.aborted) return
    this.#worker = null
    dead.terminate()
    this.#deaths++
    log.error('the heartbeat failed; starting it again', { error })
    await pause(backoff(this.#deaths), signal)
    // Meanwhile an enrolment may have started another one.
    if (this.#worker === null && !signal.aborted) this.start(this.#daemonId)
  }

  #received(report: HeartbeatReport): void {
    if ('reply' in report) {
      this.#refused = null
      this.#deaths = 0
      return this.#parts.received(report.reply, report.ahead)
    }
    const { moved, trouble, ...refusal } = report
    if (moved) return this.#parts.moved(refusal.message)
    this.#parts.refused({ code: trouble, message: refusal.message })
    if (this.#refused === refusal.code) return
    this.#refused = refusal.code
    this.#parts.log.warn('heartbeat refused', refusal)
  }
}
