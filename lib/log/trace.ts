// What a trace is made of. A trace belongs to the tree of a run. Unless a caller has named the trace, its ids follow from
// the ids of runs: a hub and a daemon agree on them without a word, and they are the same after a restart.
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
}

/** The trace of a tree of runs, and what its top run is part of. */
export interface Trace {
  readonly id: string
  /** The span of the caller; null where no caller named one. */
  readonly parent: string | null
  /** False where the caller records none of it: then nobody below it does. */
  readonly sampled: boolean
}

/** Traces what one call of an agent asks of other systems. */
export interface CallTrace {
  /** For the processes of the call. */
  readonly traceparent: string
  /** A request begins. `end` gets the status of its reply, or the code of its failure. */
  request(method: string, url: URL): { traceparent: string; end(result: number | string): void }
}

/** Version, trace, span and flags. Later versions may have more behind a further hyphen. */
const HEADER = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})($|-)/

/** The trace of a header; null for one that the standard has ignored. */
function readTraceparent(header: string | null | undefined): (Trace & { parent: string }) | null {
  const [, version, id, parent, flags, more] = HEADER.exec(header ?? '') ?? []
  if (version === undefined || (version === '00' && more !== '')) return null
  return { id: id!, parent: parent!, sampled: (Number.parseInt(flags!, 16) & 1) === 1 }
}

/** A header as it is stored: in the version and with the flags that are known here; null for none that counts. */
export function storedTraceparent(header: string | null | undefined): string | null {
  const read = readTraceparent(header)
  return read && traceparentOf(read, read.parent)
}

/** The trace of a tree. Its id is 16 bytes in hexadecimal: that of the top run, which has enough random bits. */
export function traceOf(rootId: string, traceparent: string | null | undefined): Trace {
  return readTraceparent(traceparent) ?? { id: rootId.replaceAll('-', ''), parent: null, sampled: true }
}

/** 8 bytes in hexadecimal, the same for the same names. */
export function spanIdOf(...names: (string | number)[]): string {
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(names)).digest('hex').slice(0, 16)
}

/** The span of an attempt of a run. */
export const runSpanOf = (runId: string, attempt: number): string => spanIdOf(runId, attempt)

/** The header and variable by which others continue a trace. */
export const traceparentOf = ({ id, sampled }: Trace, span: string): string =>
  `00-${id}-${span}-${sampled ? '01' : '00'}`
