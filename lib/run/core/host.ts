// What the engine needs from the daemon around it: agents with their settings, contexts to call them with, and secrets.

import type { FileHandle } from 'node:fs/promises'
import type { AgentContext, AgentResult, FileRecord, NotifyEvent, RunIdentity } from '../../agent/agent-context.ts'
import type { LogLimit } from '../../agent/commands/output.ts'
import type { Effect } from '../../agent/core/effect.ts'
import type { AgentDefinition } from '../../agent/define.ts'
import type { TeamFolder } from '../../agent/files/file-rule.ts'
import type { SmallFile, Unwritten } from '../../agent/files.ts'
import type { Identity } from '../../agent/identity.ts'
import type { Account as Lender } from '../../agent/net/account.ts'
import type { RunId } from '../../files/run-id.ts'
import type { JsonObject } from '../../json.ts'
import type { Masked, MaskedText } from '../../secrets/masked.ts'
import type { KnownSecret } from '../../secrets/redact.ts'
import type { Bundle, BundleJson } from '../../team/team.ts'
import type { ReviewNext } from '../../wire/records/review-records.ts'
import type { LogLine } from '../../wire/records/run-records.ts'
import type { ReviewRow } from './rows.ts'

export type { LogLine }

/** An agent, perhaps with which account of it, and one of its channels: where people are told something. */
export interface Account {
  agent: string
  channel: string
}

/** The run that an agent works in: its folders, its inputs and its log. */
export interface RunEnvironment {
  run: Omit<RunIdentity, 'url' | 'id'> & { id: RunId }
  rootId: RunId
  /** The environment whose settings and secrets it has; null for the plain ones. */
  environment: string | null
  phase: { name: string }
  attempt: number
  /** The package that the team came with, or the team of a folder, as `secretReader` gives it. */
  team: { name: string; fromPath: boolean }
  stateDir: string
  /** The state folder of the top run. */
  rootDir: string
  workspace: string
  /** The absolute paths of its inputs of type `file`, and the files that the person who started the tree has named. */
  files(): { files: string[]; chosen: Set<string> }
  /**
   * A person started its team on this machine from a path, and the team is no package that such a team uses: files
   * outside the workspace and literal URLs of team.yml are allowed.
   */
  fromPath: boolean
  /** The file inputs that a team of a path has given to a package. */
  given: ReadonlySet<string>
  /** The folder of its team.yml, if `fromPath`; else null. */
  teamFolder: TeamFolder | null
  /** Whether a run belongs to the same tree. */
  sameTree(runId: string): boolean
  /** Small files of the tree that are written later, but before anybody is given them. */
  unwritten: Omit<Unwritten, 'hold'>
  bundle: Bundle
  inputs: JsonObject
  log(line: Masked<Pick<LogLine, 'text' | 'fields'>> & Pick<LogLine, 'stream'>): void
  room: LogLimit
}

/** What one call of an agent is bound to, in addition to its run. */
export interface Binding {
  /** As the team calls it: `issues`, or `issues@eu`. */
  agent: string
  action?: string | undefined
  definition: AgentDefinition
  settings: Record<string, unknown>
  effect: Effect
  /** Idempotency key of the entry. It is computed when it is read, and few agents read it. */
  readonly key: string
  signal: AbortSignal
  /** The account in whose name its requests are sent. */
  account?: Lender | undefined
}

/** What the engine adds to the context of one agent call. */
export interface ContextHooks {
  event?: NotifyEvent | undefined
  /** Called when the agent starts to wait for something. The returned function ends the wait. */
  waits?: ((reason: MaskedText, until: Date | undefined) => () => void) | undefined
  /** Called before each command, and resolves when a limit lets it begin. */
  mayBegin?: (() => Promise<void>) | undefined
  /** Called before a request is sent again, and resolves when a limit lets it. */
  mayRepeat?: (() => Promise<void>) | undefined
  /** Called for each file that is written. */
  wrote?: ((file: FileRecord) => void) | undefined
  /** Called before each request and each process, with whether it may change something outside. */
  sends?: ((mayWrite: boolean) => void) | undefined
  /** Called for each file that the agent reads. The callee closes the handle when the call has ended. */
  holds?: ((handle: FileHandle) => void) | undefined
  /** Receives the small files, which are then not synced. Without it every file is synced. */
  small?: ((file: SmallFile) => void) | undefined
  /** Takes a small file that is then written later. */
  hold?: ((file: SmallFile) => boolean) | undefined
  /** The name by which the vendor knows the entry, kept in the database. */
  identity?: Identity | undefined
  /** The result of an earlier attempt that has sent the entry. */
  delivered?: (() => AgentResult | null) | undefined
}

export interface EngineHost {
  /**
   * Definition of `issues` or `issues@eu`, as it was when the top run started, and its resolved settings in the run's
   * environment. Throws `invalid_request` when either is missing.
   */
  agent(
    reference: string,
    signal: AbortSignal,
    run: { rootId: string; environment: string | null },
  ): Promise<{ definition: AgentDefinition; settings: Record<string, unknown> }>
  /**
   * `agent`, for requests that a team sends in its name: it has an account. Throws `invalid_request` when the team may not
   * use it.
   */
  account(
    reference: string,
    team: { name: string; fromPath: boolean },
    signal: AbortSignal,
    run: { rootId: string; environment: string | null },
  ): Promise<{ definition: AgentDefinition; settings: Record<string, unknown> }>
  /** The context of one agent call within a run. */
  context(run: RunEnvironment, binding: Binding, more: ContextHooks): AgentContext
  /** Masks the secrets of the settings and the given ones. */
  mask<T>(value: T, secrets: readonly KnownSecret[]): Masked<T>
  /** The value of a named secret, if the team may read it. Throws an `invalid_request` that names the secret. */
  secret(
    name: string,
    team: { name: string; fromPath: boolean },
    environment: string | null,
    signal: AbortSignal,
  ): Promise<string>
  restoreBundle(id: string, json: BundleJson): Bundle
  /** What the approval of a review leads to. */
  leadsTo(review: ReviewRow): Promise<ReviewNext>
}
