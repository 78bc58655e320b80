// The spans of runs: one for each attempt of a run, for each of its phases, and for each request of an agent. They are
// made from the rows when something has ended, so a run that was interrupted has them, too. Names are those of
// OpenTelemetry's conventions for CI/CD and HTTP, where they have one.

import type { Json } from '../../json.ts'
import { type CallTrace, runSpanOf, type Span, spanIdOf, type Trace, traceOf, traceparentOf } from '../../log/trace.ts'
import { Recent } from '../../recent.ts'
import type { Engine, Notice, RunRow } from '../../run/engine.ts'
import type { Masked } from '../../secrets/masked.ts'
import { resultOf } from '../../wire/states.ts'

/** How many spans are remembered as added, because a row changes again after its end. */
const MOST_REMEMBERED = 10_000

export interface RunTracingOptions {
  tracer: { add(span: Span & Masked<Pick<Span, 'name' | 'attributes'>>): void }
  engine: Engine
  /** Removes the secrets that the daemon knows. */
  mask<T extends Json>(value: T): Masked<T>
  /** The address of a run's page, if there is one. */
  pageOf(runId: string): string | null
}

export class RunTracing {
  readonly #options: RunTracingOptions
  readonly #added = new Recent<string, true>(MOST_REMEMBERED)
  /** Of the top runs of sub-runs. */
  readonly #traces = new Recent<string, Trace>(MOST_REMEMBERED)

  constructor(options: RunTracingOptions) {
    this.#options = options
    options.engine.follow(notice => this.#onNotice(notice))
  }

  /** For a call that works for `phase` of a run, or for one of its listeners. */
  callOf(runId: string, phase: string): CallTrace | undefined {
    const row = this.#options.engine.store.runs.get(runId)
    if (!row) return undefined
    const trace = this.#traceOf(row)
    const isPhase = this.#phasesOf(row).some(({ name }) => name === phase)
    const parent = isPhase ? phaseSpanOf(row, phase) : runSpanOf(row.id, row.attempt)
    return {
      traceparent: traceparentOf(trace, parent),
      request: (method, { hostname, port, protocol }) => {
        const id = spanIdOf(crypto.randomUUID())
        const start = Date.now()
        const known = { 'http.request.method': method, 'server.address': hostname, 'cicd.pipeline.run.id': row.id }
        const end = (result: number | string) => {
          const failed = typeof result === 'string' || result >= 400
          this.#add(trace, {
            ...{ id, parent, name: method, kind: 'client', start, end: Date.now(), failed },
            attributes: {
              ...known,
              // The path and the query may contain secrets.
              'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
              ...(typeof result === 'number' && { 'http.response.status_code': result }),
              ...(failed && { 'error.type': String(result) }),
            },
          })
        }
        return { traceparent: traceparentOf(trace, id), end }
      },
    }
  }

  #onNotice({ kind, runId, position }: Notice): void {
    const row = kind === 'run' || kind === 'phase' ? this.#options.engine.store.runs.get(runId) : null
    if (!row) return
    if (kind === 'phase' && position !== null) this.#phaseChanged(row, position)
    else if (kind === 'run' && row.completed_at !== null) this.#runEnded(row)
  }

  #runEnded(row: RunRow): void {
    const { pageOf, engine } = this.#options
    const above = row.parent_id === null ? null : engine.store.runs.get(row.parent_id)
    const page = pageOf(row.id)
    const trace = this.#traceOf(row)
    this.#addOnce(trace, {
      id: runSpanOf(row.id, row.attempt),
      parent: above ? phaseSpanOf(above, row.parent_phase!) : trace.parent,
      name: `RUN ${row.team}`,
      kind: 'server',
      start: row.started_at ?? row.created_at,
      end: row.completed_at!,
      failed: row.state === 'failed',
      attributes: {
        'cicd.pipeline.action.name': 'RUN',
        'cicd.pipeline.name': row.team,
        'cicd.pipeline.run.id': row.id,
        'cicd.pipeline.result': resultOf(row),
        ...(page !== null && { 'cicd.pipeline.run.url.full': page }),
        ...errorType(row.error),
      },
    })
  }

  #phaseChanged(run: RunRow, position: number): void {
    const row = this.#options.engine.store.phases.get(run.id, position)
    if (!row || row.completed_at === null || row.started_at === null) return
    const { name, type } = this.#phasesOf(run)[position]!
    const id = phaseSpanOf(run, name)
    this.#addOnce(this.#traceOf(run), {
      id,
      parent: runSpanOf(run.id, run.attempt),
      name,
      kind: 'internal',
      start: row.started_at,
      end: row.completed_at,
      failed: row.state === 'failed',
      attributes: {
        'cicd.pipeline.task.name': name,
        'cicd.pipeline.task.run.id': id,
        'cicd.pipeline.task.run.result': resultOf(row),
        'cicd.pipeline.run.id': run.id,
        'cadre.phase.type': type,
        'cadre.phase.attempt': row.attempt,
        ...errorType(row.error),
      },
    })
  }

  #phasesOf({ bundle_id, team_key }: RunRow) {
    return this.#options.engine.bundle(bundle_id).team(team_key).phases
  }

  /** The trace of the tree of a run. */
  #traceOf({ id, root_id, traceparent }: RunRow): Trace {
    if (id === root_id) return traceOf(id, traceparent)
    const known = this.#traces.get(root_id)
    if (known) return known
    const trace = traceOf(root_id, this.#options.engine.store.runs.get(root_id)?.traceparent)
    this.#traces.set(root_id, trace)
    return trace
  }

  #addOnce(trace: Trace, span: Omit<Span, 'trace'>): void {
    const key = `${span.id} ${span.end}`
    if (this.#added.get(key)) return
    this.#added.set(key, true)
    this.#add(trace, span)
  }

  #add({ id: trace, sampled }: Trace, span: Omit<Span, 'trace'>): void {
    if (!sampled) return
    const { tracer, mask } = this.#options
    const { name, attributes } = mask({ name: span.name, attributes: { ...span.attributes } })
    tracer.add({ ...span, trace, name, attributes })
  }
}

const phaseSpanOf = (run: RunRow, phase: string): string => spanIdOf(run.id, run.attempt, phase)

function errorType(error: string | null): { 'error.type'?: string } {
  const { code } = error === null ? {} : (JSON.parse(error) as { code?: unknown })
  return typeof code === 'string' ? { 'error.type': code } : {}
}
