// Why a run ended as it did, from what a hub has of it. The hub does not have the definitions of the teams. The error of
// a failed run names the leaf where it began, and a failure was passed over if its run has completed.

import { isObject, type Json } from '../../json.ts'
import { explain, type PhaseFacts, type RunFacts, withoutSilent } from '../../run/engine.ts'
import { ListQueue } from '../../wire/calls/dispatch.ts'
import { ListHubReviews } from '../../wire/calls/hub-reviews.ts'
import {
  GetHubLogs,
  GetHubPhases,
  GetHubRun,
  GetHubTree,
  type HubPhase,
  type HubRun,
} from '../../wire/calls/hub-runs.ts'
import type { TreeEntry } from '../../wire/records/hub-records.ts'
import type { Why } from '../../wire/records/run-records.ts'
import type { HubClient } from '../link/link.ts'
import { deliveriesOf, errorOf } from './hub-records.ts'

const PAGE = 100

/** `text` has the lines only, because only the command knows how the hub was given. */
export async function whyAtHub(client: HubClient, runId: string): Promise<Why> {
  const [run, { runs: entries }] = await Promise.all([
    client.call(GetHubRun, { run_id: runId }),
    client.call(GetHubTree, { run_id: runId }),
  ])
  const tree = new Tree(entries)
  const leafId = errorOf(run.error)?.run_id
  const chain: [RunFacts, ...RunFacts[]] = [await factsOf(client, run, tree, leafId)]
  for (let facts = chain[0]; facts.cause !== null && facts.cause.type !== 'standard'; ) {
    const next = tree.deciding(facts, leafId)
    if (!next) break
    facts = await factsOf(client, await client.call(GetHubRun, { run_id: next.run_id }), tree, leafId)
    chain.push(facts)
  }
  const found = explain({
    root_run_id: run.root_run_id,
    root_state: entries[0]?.state ?? run.state,
    chain,
    written: null,
    unasked: [],
    mayAsk: false,
    review: run.state === 'awaiting_input' ? await reviewOf(client, chain.at(-1)!.run_id) : null,
    holder: null,
    unfilled: null,
    failedItems: false,
    began: run.daemon_id !== null,
  })
  const heard = await withoutSilent(found, query => client.call(GetHubLogs, query))
  return { ...heard, text: heard.lines.join('\n') }
}

async function factsOf(
  client: HubClient,
  run: HubRun & { deliveries: Json[] },
  tree: Tree,
  leafId: string | undefined,
): Promise<RunFacts> {
  const { phases: rows } = await client.call(GetHubPhases, { run_id: run.run_id })
  const phases = rows.map(row => phaseFacts(row, run.state))
  const error = errorOf(run.error)
  return {
    ...run,
    error,
    phases,
    cause: causeOf(run, phases, leafId === run.run_id ? error?.phase : tree.towards(run.run_id, leafId)?.parent_phase),
    turn: run.state === 'queued' ? await turnOf(client, run) : null,
    deliveries: deliveriesOf(run.deliveries),
  }
}

function phaseFacts(row: HubPhase, run: string): PhaseFacts {
  const { name, type, agent, action, state, reason, attempt, error, data } = row
  const { total, failed } = isObject(data) ? data : {}
  const isCounted = type === 'map' && state === 'completed' && typeof total === 'number' && typeof failed === 'number'
  return {
    ...{ name, type, agent, action, state, reason, attempt },
    error: errorOf(error),
    tolerated: run === 'completed',
    cleanup: false,
    waiting: null,
    items: isCounted ? { total, failed } : null,
  }
}

/** The phase that decided the end of a run, or for which it waits. `named` is known to lead to the leaf. */
function causeOf(
  { state }: HubRun,
  phases: readonly PhaseFacts[],
  named: string | null | undefined,
): PhaseFacts | null {
  if (!['failed', 'awaiting_input', 'running'].includes(state)) return null
  const inState = phases.filter(phase => phase.state === state)
  return inState.find(({ name }) => name === named) ?? inState[0] ?? null
}

async function turnOf(client: HubClient, { realm_id, run_id }: HubRun): Promise<string | null> {
  for (let offset = 0; ; ) {
    const { jobs, total } = await client.call(ListQueue, { realm_id, limit: PAGE, offset })
    offset += jobs.length
    const job = jobs.find(each => each.run_id === run_id)
    if (job) return job.waiting_for ?? (job.state === 'leased' ? 'its daemon to accept it' : null)
    if (jobs.length === 0 || offset >= total) return null
  }
}

async function reviewOf(client: HubClient, run_id: string): Promise<string | null> {
  const { reviews } = await client.call(ListHubReviews, { run_id, state: 'pending', limit: 1 })
  return reviews[0]?.id ?? null
}

/** The runs of a tree, which come depth first, with what is above each. */
class Tree {
  readonly #entries: readonly TreeEntry[]
  readonly #above = new Map<string, string>()

  constructor(entries: readonly TreeEntry[]) {
    this.#entries = entries
    const path: string[] = []
    for (const { run_id, call_depth } of entries) {
      path[call_depth] = run_id
      const above = path[call_depth - 1]
      if (above !== undefined) this.#above.set(run_id, above)
    }
  }

  /** The run directly below `runId` on the way to `leafId`. */
  towards(runId: string, leafId: string | undefined): TreeEntry | undefined {
    for (let id = leafId; id !== undefined; id = this.#above.get(id)) {
      if (this.#above.get(id) === runId) return this.#entries.find(({ run_id }) => run_id === id)
    }
    return undefined
  }

  /** The sub-run that is the reason why the deciding phase of a run failed or waits. */
  deciding({ run_id, cause }: RunFacts, leafId: string | undefined): TreeEntry | undefined {
    const states = cause!.state === 'failed' ? ['failed', 'cancelled'] : [cause!.state]
    const below = this.#entries.filter(
      entry => this.#above.get(entry.run_id) === run_id && entry.parent_phase === cause!.name,
    )
    const onTheWay = this.towards(run_id, leafId)
    return below.find(entry => entry === onTheWay) ?? below.find(({ state }) => states.includes(state))
  }
}
