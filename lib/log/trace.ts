// What a trace is made of. A trace belongs to the tree of a run, and its ids follow from the ids of runs: a hub and a
// daemon agree on them without a word, and they are the same after a restart.
// https://www.w3.org/TR/trace-context/

/** One piece of work that has ended. */
export interface Span {
  trace: string
  id: string
  parent: string | null
  name: string
  kind: 'internal' | 'server' | 'client' | 'producer'
  /** Epoch milliseconds. */
  start: number
  end: number
  /** Without secrets. */
  attributes: Readonly<Record<string, string | number>>
  failed: boolean
}

/** Takes spans and exports them later. It never throws or blocks, and drops spans beyond its limit. */
export interface Tracer {
  add(span: Span): void
  /** Exports the spans that are left, for 1.5 s at most. */
  close(): Promise<void>
}

/** Traces what one call of an agent asks of other systems. */
export interface CallTrace {
  /** For the processes of the call. */
  readonly traceparent: string
  /** A request begins. `end` gets the status of its reply, or the code of its failure. */
  request(method: string, url: URL): { traceparent: string; end(result: number | string): void }
}

/** 16 bytes in hexadecimal: the id of the top run, which has enough random bits. */
export const traceIdOf = (rootId: string): string => rootId.replaceAll('-', '')

/** 8 bytes in hexadecimal, the same for the same names. */
export function spanIdOf(...names: (string | number)[]): string {
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(names)).digest('hex').slice(0, 16)
}

/** The span of an attempt of a run. */
export const runSpanOf = (runId: string, attempt: number): string => spanIdOf(runId, attempt)

/** The header and variable by which others continue a trace. */
export const traceparentOf = (trace: string, span: string): string => `00-${trace}-${span}-01`
