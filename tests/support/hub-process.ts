// A process that serves a hub for tests when it is asked to over IPC, and after a stop another one: its code is then
// compiled already, which is most of what a start costs.

import type { Answer, Question } from './hub-processes.ts'
import { type ServedHub, serveHub } from './served-hub.ts'

let hub: ServedHub | null = null

process.on('message', async ({ id, place, ask, ms }: Question) => {
  if (place) hub = await serveHub(place)
  const lines = ask && ask !== 'stop' ? await hub!.ask(ask, ms) : []
  if (ask === 'stop') await hub!.stop()
  process.send!({ id, url: hub!.url, lines } satisfies Answer)
})
// The test process has ended.
process.on('disconnect', () => process.exit())
