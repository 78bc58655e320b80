// Executes one attempt of a leaf phase: evaluates templates, checks entries, calls the agent and masks its results. It
// never throws: every failure becomes an Outcome.

import type { AgentContext, AgentResult, FileRecord } from '../../agent/agent-context.ts'
import { AgentError, withHint } from '../../agent/core/agent-error.ts'
import type { Handler } from '../../agent/define.ts'
import { type FileScope, wholePath } from '../../agent/files/file-rule.ts'
import { diskFull, type SmallFile } from '../../agent/files.ts'
import type { Identity } from '../../agent/identity.ts'
import { SETTLE_MS } from '../../agent/settling.ts'
import { parseDuration } from '../../duration.ts'
import { CadreError } from '../../error.ts'
import { isObject, type JsonObject, notJson } from '../../json.ts'
import { limitSignal } from '../../lived-time.ts'
import { joinMasked, type Masked, type MaskedText } from '../../secrets/masked.ts'
import {
  type AgentCall,
  type GatePhase,
  runsCommands,
  type Scope,
  type StandardPhase,
  type Team,
} from '../../team/team.ts'
import { listed } from '../../text/spelling.ts'
import {
  type Binding,
  bounded,
  type ContextHooks,
  type EngineHost,
  type JsonText,
  type Meter,
  type WriteResult,
} from '../core/core.ts'
import { stillNamed } from '../files/files.ts'
import { errorOf, type Outcome, textOf } from '../steps/steps.ts'
import { withAccountOf } from './account.ts'
import { endWithSignal, keepFilesOpen, noteRequests, noteWrite } from './agent-call.ts'
import { type Call, callsOf, gateCall } from './calls.ts'
import { type Copy, type Found, type Ledger, type SettlingWait, UnknownWrite } from './ledger.ts'
import { emptyFolder, recordPhaseFiles, removeFolder } from './phase-files.ts'

/** How long `find` may take. The time of the phase does not include it. */
export const FIND_MS = 30_000

/** The functions of the run and the daemon that an attempt uses. */
export interface AttemptServices {
  host: Pick<EngineHost, 'agent' | 'account' | 'secret'>
  context(binding: Binding, hooks: ContextHooks): AgentContext
  ledger: Pick<Ledger, 'once'>
  /** The id by which the vendor knows an entry. */
  identity(entry: string): Identity
  stateDir: string
  /** Which files its paths may name. */
  readonly places: FileScope
  /** Makes the workspace if it does not exist. */
  makeWorkspace(): void
  /** Writes a line into the log of the phase. */
  log(text: string): void
  /** Replaces every known secret. */
  mask<T>(value: T): Masked<T>
  /** Encrypts a small file for the database. */
  seal(file: SmallFile): SmallFile
  /** Takes a small file that is then written later; absent where files are written at once. */
  hold: ((file: SmallFile) => boolean) | undefined
  /** Writes the files of the tree that are written later. */
  flush(): Promise<void>
  meter: Pick<Meter, 'writeEnded'> | undefined
  settling: SettlingWait
  /** Resolves when the limits of the phase, and of those above, let an entry or a command begin; null without limits. */
  mayBegin: (() => Promise<void>) | null
  /** The same for a request that is sent again. */
  mayRepeat: ((signal: AbortSignal) => Promise<void>) | null
}

export interface Attempt {
  runId: string
  rootId: string
  /** The environment whose settings and secrets it has; null for the plain ones. */
  environment: string | null
  position: number
  attempt: number
  /** Of a phase with `repeat`; otherwise 1. */
  turn: number
  phase: StandardPhase | GatePhase
  /** What expressions can name now. */
  scope(): Scope
  team: Team
  /** The package of the team, whose right to named secrets decides. */
  reader: { name: string; fromPath: boolean }
  /** The same, whose right to accounts of agents decides: a team of a path only in a run that was started from it. */
  borrower: { name: string; fromPath: boolean }
  /** Aborted by a cancel, by the stop of the daemon, or, with a `TimeoutError`, by the clock of the attempt. */
  signal: AbortSignal
  /** Aborted by a cancel or by the stop of the daemon, even when the clock of the attempt has aborted `signal`. */
  stopped: AbortSignal
}

/** How long `find` has to stop after its signal has fired. */
const FIND_STOP_MS = 500

export async function execute(attempt: Attempt, services: AttemptServices): Promise<Outcome> {
  try {
    const { phase } = attempt
    const agentCall = phase.type === 'gate' ? gateCall(phase) : phase
    const { agent, action } = agentCall
    const { definition, settings } = await services.host.agent(agent, attempt.signal, attempt)
    const { team } = attempt
    const secrets = team.secrets.length > 0 ? await secretsOf(attempt, services) : NO_SECRETS
    const calls = await callsOf(agentCall, definition, team, fullScope(attempt, services, agentCall, secrets))
    const isPhaseLevel = calls.some(call => call.phaseLevel)
    if (attempt.attempt > 1 || isPhaseLevel) await services.flush()
    if (attempt.attempt > 1) await removeFolder(services.stateDir, phase.name)
    if (isPhaseLevel) {
      services.makeWorkspace()
      await emptyFolder(services.stateDir, phase.name)
    }
    const written: FileRecord[] = []
    const small: SmallFile[] = []
    const results: [Call, Masked<AgentResult>][] = []
    for (const call of calls) {
      attempt.signal.throwIfAborted()
      results.push([
        call,
        await perform(attempt, services, { agent, action, definition, settings }, call, { written, small }).catch(
          thrown => {
            throw withSecretsHint(thrown, call)
          },
        ),
      ])
    }
    const files = isPhaseLevel
      ? await recordPhaseFiles(phase.name, services, small, attempt.signal)
      : lastOfEach(written)
    const result = combine(results, phase.name, files)
    const sealed = stillNamed(small, files).map(services.seal)
    return { kind: 'completed', ...result, files, small: sealed }
  } catch (thrown) {
    try {
      return await outcomeOf(thrown, attempt.signal, services)
    } catch {
      // The thrown value is so broken that even reading it throws.
      return { kind: 'failed', error: { code: 'internal', message: textOf(thrown) }, retryable: false }
    }
  }
}

/** The last record of each path: an entry may write a file twice. */
function lastOfEach(written: readonly FileRecord[]): readonly FileRecord[] {
  if (written.length < 2) return written
  return [...new Map(written.map(file => [file.path, file])).values()]
}

const NO_SECRETS: ReadonlyMap<string, string> = new Map()

/** The values of the named secrets that a team uses. */
async function secretsOf(
  { team, reader, environment, signal }: Attempt,
  { host }: AttemptServices,
): Promise<Map<string, string>> {
  const secrets = new Map<string, string>()
  for (const name of team.secrets) secrets.set(name, await host.secret(name, reader, environment, signal))
  return secrets
}

/** The scope of an agent's call: also has named secrets and, for commands, absolute paths of files. */
function fullScope(
  { phase, scope }: Attempt,
  services: AttemptServices,
  call: AgentCall,
  secrets: ReadonlyMap<string, string>,
): Scope {
  const names = scope()
  names.secret = name => secrets.get(name) ?? ''
  const isExec = phase.type === 'gate' || call.agent === 'exec'
  if (isExec) names.file = path => wholePath(path, services.places)
  return names
}

async function perform(
  attempt: Attempt,
  services: AttemptServices,
  bound: Pick<Binding, 'agent' | 'action' | 'definition' | 'settings'>,
  call: Call,
  { written, small }: { written: FileRecord[]; small: SmallFile[] },
): Promise<Masked<AgentResult>> {
  const { runId, position, turn, signal, stopped } = attempt
  const { name, kind, handler } = call
  const { entry, account = undefined } =
    call.account === null
      ? { entry: call.entry }
      : await withAccountOf(call, call.account, attempt, services.host, binding =>
          services.context({ ...binding, key: '', signal }, {}),
        )
  const { agent, action, definition, settings } = bound
  const effect = typeof handler.effect === 'function' ? handler.effect(entry) : handler.effect
  const { mayBegin, mayRepeat } = services
  const hooks: ContextHooks = {
    wrote: file => void written.push(file),
    small: file => void small.push(file),
    hold: services.hold,
    mayBegin: mayBegin ?? undefined,
    identity: services.identity(name),
  }
  const contextUntil = (until: AbortSignal, more: ContextHooks): AgentContext =>
    services.context(
      {
        agent,
        action,
        definition,
        settings,
        account,
        effect,
        get key() {
          return idempotencyKey(runId, position, name, turn)
        },
        signal: until,
      },
      { ...hooks, mayRepeat: mayRepeat ? () => mayRepeat(until) : undefined, ...more },
    )
  // `validate` refuses what the file shows; the effect of an entry may follow from a template.
  if (effect === 'once' && attempt.phase.repeat) throw neverRepeated(name)
  // Commands begin one by one. A wait comes before the receipt of a write, because nothing is sent meanwhile.
  if (mayBegin && !(call.phaseLevel && runsCommands(attempt.phase))) await mayBegin()
  const requests = noteRequests()
  const files = keepFilesOpen()
  let before: AgentResult | null = null
  const context = contextUntil(signal, { ...requests.hooks, ...files.hooks, delivered: () => before })
  let asked = false
  const send = async () => {
    asked = true
    return checkedResult(
      await endWithSignal(
        files.closeAfter(() => handler.run(entry, context)),
        signal,
      ),
      agent,
    )
  }
  if (effect === 'read') return services.mask(await send())
  const { meter } = services
  const told = { asked: () => asked, tell: (result: WriteResult) => meter?.writeEnded(agent, effect, result) }
  if (effect === 'idempotent') return services.mask(await noteWrite(send(), told))
  const find = async () => {
    asked = true
    const files = keepFilesOpen()
    using over = limitSignal(FIND_MS)
    const asking = AbortSignal.any([stopped, over.signal])
    try {
      const found = await endWithSignal(
        files.closeAfter(() => handler.find!(entry, contextUntil(asking, files.hooks))),
        asking,
        FIND_STOP_MS,
      )
      return foundBy(found, agent)
    } catch (thrown) {
      if (!over.signal.aborted || stopped.aborted) throw thrown
      const message = `${agent} did not answer within ${FIND_MS / 1_000} s`
      throw new AgentError(message, { code: 'timeout', retryable: true, cause: thrown })
    }
  }
  const write = services.ledger.once({
    runId,
    position,
    attempt: attempt.attempt,
    entry: name,
    label: name === '' ? `what phase ${attempt.phase.name} writes` : name,
    agent,
    sent: requestText(handler, entry, idempotencyKey(runId, position, name)),
    stopped,
    mask: services.mask,
    send(delivered) {
      before = delivered
      return send()
    },
    onlyRead: requests.onlyRead,
    find: handler.find && find,
    seesAtOnce: handler.sees === 'at once',
    settles: (handler.settles === undefined ? null : parseDuration(handler.settles)) ?? SETTLE_MS,
    settling: services.settling,
    call: () => JSON.stringify({ agent, action, kind, entry }),
  })
  return noteWrite(write, told)
}

const neverRepeated = (entry: string): CadreError =>
  new CadreError(
    'invalid_request',
    `${entry === '' ? 'the phase' : `entry ${entry}`} has the effect \`once\`, and \`repeat\` would write it in each turn: nothing was sent`,
  )

/** Reads the reply of `find`: one result, or a list of all results that carry the mark of the entry. */
export function foundBy(found: AgentResult | readonly AgentResult[] | null | undefined, agent: string): Found | null {
  const [first, ...others] = Array.isArray(found) ? found : [found]
  if (first === null || first === undefined) return null
  const copies = others.map(each => checkedResult(each, agent).external ?? {})
  return { result: checkedResult(first, agent), copies: copies.map(({ id = null, url = null }): Copy => ({ id, url })) }
}

/**
 * The request of an entry that has its address in a field, as entries of http do. The query is left out, because it may
 * contain keys that no setting names.
 */
function requestText({ entry: schema }: Handler, { url, method, headers }: JsonObject, key: string): string {
  const address = typeof url === 'string' ? URL.parse(url) : null
  const used = method ?? (schema.properties?.method as { default?: string } | undefined)?.default
  if (!address || !used) return ''
  const own = isObject(headers)
    ? Object.entries(headers).find(([name]) => name.toLowerCase() === KEY_HEADER)
    : undefined
  return `sent: ${used} ${address.origin}${address.pathname}, ${KEY_HEADER} ${own?.[1] ?? key}`
}

/** https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header */
const KEY_HEADER = 'idempotency-key'

/** Checks and copies what an agent returned. Throws when JSON cannot hold it. */
function checkedResult(given: unknown, agent: string): AgentResult {
  const wrong = (what: string) => new Error(`[${agent}] the agent must return a result that can be recorded: ${what}`)
  if (!isObject(given) || typeof given.text !== 'string') throw wrong('expected {text, data?, external?}')
  const { text, data, external } = given
  const problem = notJson(data, 'data') ?? notJson(external, 'external')
  if (problem) throw wrong(problem)
  // A copy, so that later changes of the agent's own objects have no effect.
  return { text, ...JSON.parse(JSON.stringify({ data, external })) }
}

/**
 * The same key for all attempts, so that a vendor with idempotency keys sees one request. Each turn of a phase with
 * `repeat` is a request of its own.
 */
export function idempotencyKey(runId: string, position: number, entry: string, turn = 1): string {
  const hex = Bun.SHA256.hash(`${runId}\0${position}\0${entry}${turn > 1 ? `\0${turn}` : ''}`, 'hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

function combine(
  results: [Call, Masked<AgentResult>][],
  phase: string,
  files: readonly FileRecord[],
): { text: MaskedText; data: JsonText } {
  const [call, only] = results[0]!
  const text = joinMasked(
    results.map(([, result]) => result.text),
    '\n',
  )
  if (call.phaseLevel) return { text, data: bounded(only.data ?? {}, phase, files) }
  const entries = Object.fromEntries(results.map(([{ name }, result]) => [name, result.data ?? {}]))
  const top = results.length === 1 && isObject(only.data) ? only.data : {}
  return { text, data: bounded({ ...top, entries }, phase, files) }
}

/** Adds a hint that names the secrets of the entry, because a refused credential may be one of them and no setting. */
function withSecretsHint(thrown: unknown, { name, secrets }: Call): unknown {
  if (!(thrown instanceof AgentError) || thrown.code !== 'unauthorized' || secrets.length === 0) return thrown
  const where = name === '' ? 'the phase' : `the entry ${name}`
  return withHint(thrown, `check ${listed(secrets)}, which ${where} sends`)
}

const timedOut = ({ aborted, reason }: AbortSignal): boolean => aborted && reason?.name === 'TimeoutError'

async function outcomeOf(thrown: unknown, signal: AbortSignal, services: AttemptServices): Promise<Outcome> {
  if (signal.aborted && !timedOut(signal)) return { kind: 'cancelled' }
  if (thrown instanceof UnknownWrite) {
    const error = { code: 'unknown', message: thrown.message, hint: 'look outside, then decide' }
    return { kind: 'unknown', error, entries: [thrown.entry], sent: thrown.sent }
  }
  if (timedOut(signal)) {
    const error = { code: 'timeout', message: textOf(signal.reason) }
    return { kind: 'failed', error, retryable: true }
  }
  const known = thrown instanceof AgentError && thrown.code === 'disk_full'
  const reason = known ? thrown : ((await diskFull(thrown, services.stateDir)) ?? thrown)
  return {
    kind: 'failed',
    error: errorOf(reason),
    retryable: reason instanceof AgentError && reason.retryable === true,
  }
}
