// People and programs that go on working during a fault: runs are dispatched under keys of their own until each is
// accepted, and lists are read. Counted is what is refused, and how often each run was executed.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../../tests/support/folder.ts'

export const TEAM = '@admin/day'

/** Each run adds a line to a file outside, with the time, and leaves a file to be stored. */
export const teamText = (lines: string) => `name: "${TEAM}"
version: 1.0.0
inputs: [{ name: text, type: string, required: true }]
phases:
  - name: write
    agent: exec
    commands:
      - { name: w, env: { TEXT: "{{ inputs.text }}" }, run: 'echo "$TEXT $(date +%s%3N)" >> ${lines}; echo "$TEXT" > "$CADRE_OUT/kept"' }
`

export interface Answer {
  status: number
  /** `ok`, the code of the error, or how the connection failed. */
  code: string
  // biome-ignore lint/suspicious/noExplicitAny: the data of all calls
  data: any
}

export type Call = (path: string, body?: object) => Promise<Answer>

export interface Dispatched {
  text: string
  run_id: string
  acceptedAt: number
}

const DISPATCHERS = 3
const READERS = 2
const PAUSE_MS = 700
const AGAIN_MS = 250

export class Load {
  readonly lines = join(folder(), 'lines')
  readonly dispatched: Dispatched[] = []
  readonly refused: { at: number; how: string }[] = []
  /** How long each call took, with the time of its end. */
  readonly took: { at: number; ms: number }[] = []
  readonly #call: Call
  readonly #body: object
  #isOver = false
  #all: Promise<unknown> = Promise.resolve()

  /** `body` is what each dispatch has in common. */
  constructor(call: Call, body: object, lines: string) {
    this.#call = call
    this.#body = body
    this.lines = lines
  }

  start(): void {
    const dispatchers = Array.from({ length: DISPATCHERS }, (_, at) => this.#dispatch(`d${at}`))
    const readers = Array.from({ length: READERS }, () => this.#read())
    this.#all = Promise.all([...dispatchers, ...readers])
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#all
  }

  /** When each line was written, by the text of its run. */
  executed(): Map<string, number[]> {
    const found = new Map<string, number[]>()
    const text = existsSync(this.lines) ? readFileSync(this.lines, 'utf8') : ''
    for (const line of text.split('\n').filter(Boolean)) {
      const [name, at] = line.split(' ') as [string, string]
      found.set(name, [...(found.get(name) ?? []), Number(at)])
    }
    return found
  }

  async #timed(path: string, body: object): Promise<Answer> {
    const began = performance.now()
    const answer = await this.#call(path, body)
    this.took.push({ at: Date.now(), ms: performance.now() - began })
    if (answer.code !== 'ok') this.refused.push({ at: Date.now(), how: howOf(answer) })
    return answer
  }

  async #dispatch(name: string): Promise<void> {
    for (let n = 0; !this.#isOver; n++) {
      const text = `${name}-${n}`
      while (!this.#isOver) {
        const body = { ...this.#body, team: TEAM, inputs: { text }, idempotency_key: text }
        const { code, data } = await this.#timed('dispatch/run', body)
        if (code === 'ok') {
          this.dispatched.push({ text, run_id: data.run_id, acceptedAt: Date.now() })
          break
        }
        await Bun.sleep(AGAIN_MS)
      }
      await Bun.sleep(PAUSE_MS)
    }
  }

  async #read(): Promise<void> {
    while (!this.#isOver) {
      const { code } = await this.#timed('runs/list', { limit: 10 })
      await Bun.sleep(code === 'ok' ? PAUSE_MS : AGAIN_MS)
    }
  }
}

const howOf = ({ status, code }: Answer): string => (status === 0 ? code : `${status} ${code}`)
