// What waits to be sent to the hub, and whether something keeps it from being sent, as metrics.

import { Gauge, type Sample } from '../../http/metrics.ts'
import { waitingIn } from '../link/outbox/outbox.ts'
import type { Daemon } from '../runs/daemon.ts'

const CHANGES = new Gauge({ name: 'cadre_outbox_changes', help: 'Changes that the hub has not acknowledged.' })
const CHANGES_BYTES = new Gauge({ name: 'cadre_outbox_bytes', help: 'The size of these changes.' })
const CHANGES_AGE = new Gauge({ name: 'cadre_outbox_oldest_seconds', help: 'The age of the oldest of these changes.' })
const LINES = new Gauge({ name: 'cadre_outbox_lines', help: 'Log lines that the hub has not acknowledged.' })
const FILES = new Gauge({ name: 'cadre_outbox_files', help: 'Files that the store of the hub does not have yet.' })
const FILES_BYTES = new Gauge({ name: 'cadre_outbox_files_bytes', help: 'The size of these files.' })
const FILES_AGE = new Gauge({
  name: 'cadre_outbox_files_oldest_seconds',
  help: 'The age of the oldest of these files.',
})
const FILES_FAILING = new Gauge({
  name: 'cadre_outbox_files_failing',
  help: '1 while a file waits that could not be sent; `status` says why.',
})
const PAUSED = new Gauge({
  name: 'cadre_hub_paused',
  help: '1 while an operator has paused this daemon. Absent where the daemon has no hub.',
})
const FAILING = new Gauge({
  name: 'cadre_hub_failing',
  help: '1 for each step of the link to the hub that fails now, with the code of its error; `status` says why.',
  // A hub names the codes of its errors.
  open: ['code'],
})

export async function waitingMetrics({ engine, remote }: Daemon): Promise<string[]> {
  const { changes, lines, files } = await waitingIn(engine.store)
  const { paused, troubles } = remote?.standing() ?? { paused: null, troubles: [] }
  const age = (oldest: number | null) => oldest && Math.max(0, (Date.now() - oldest) / 1_000)
  return [
    CHANGES.text(changes.count),
    CHANGES_BYTES.text(changes.bytes),
    CHANGES_AGE.text(age(changes.oldest_at)),
    LINES.text(lines),
    FILES.text(files.count),
    FILES_BYTES.text(files.bytes),
    FILES_AGE.text(age(files.oldest_at)),
    FILES_FAILING.text(files.error === null ? 0 : 1),
    PAUSED.text(paused === null ? null : Number(paused)),
    FAILING.text(troubles.map(({ step, code }): Sample => [{ step, code }, 1])),
  ]
}
