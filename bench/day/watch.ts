// What somebody on call can see: `/ready` of the hubs, `cadre status` on the machine of a daemon, that daemon's page, and the
// alerts. What is seen before a fault is no news.

import type { Prometheus } from './prometheus.ts'
import type { World } from './world.ts'

export type Place = '/ready' | 'status' | 'page' | 'alert'

export interface Sight {
  place: Place
  at: number
  line: string
}

/** An alert that fires for a later time, or of another daemon, is not news. */
const kindOf = (line: string): string => line.replace(/[0-9a-f]{8}-[0-9a-f-]{27,}/g, '#').replace(/\d[\d.:,]*/g, '#')

export class Watch {
  readonly sights: Sight[] = []
  readonly #known = new Set<string>()
  readonly #world: World
  readonly #prometheus: Prometheus | null
  #isArmed = false
  #isOver = false
  #all: Promise<unknown> = Promise.resolve()

  constructor(world: World, prometheus: Prometheus | null) {
    this.#world = world
    this.#prometheus = prometheus
  }

  start(): void {
    const { hubs } = this.#world
    this.#all = Promise.all([
      ...hubs.map((_, at) => this.#again('/ready', 500, () => this.#world.ready(at))),
      this.#again('status', 1_500, () => this.#world.status()),
      this.#again('page', 1_000, () => this.#world.page()),
      this.#again('alert', 500, async () =>
        ((await this.#prometheus?.firing()) ?? []).map(({ name, summary }) => `${name}: ${summary}`),
      ),
    ])
  }

  /** From now on everything that was not there is news. */
  arm(): void {
    this.#isArmed = true
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#all
  }

  async #again(place: Place, pauseMs: number, look: () => Promise<string[]>): Promise<void> {
    while (!this.#isOver) {
      this.#note(place, await look().catch(error => [`${place} cannot be seen: ${error}`]))
      await Bun.sleep(pauseMs)
    }
  }

  #note(place: Place, lines: string[]): void {
    for (const line of lines) {
      const kind = `${place} ${kindOf(line)}`
      if (this.#known.has(kind)) continue
      this.#known.add(kind)
      if (this.#isArmed) this.sights.push({ place, at: Date.now(), line })
    }
  }
}
