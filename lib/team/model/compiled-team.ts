// The compiled form of a team, as the engine uses it: team.yml after it was read and checked. It is immutable, and all
// runs of the team share it.

import type { Json, JsonObject } from '../../json.ts'
import type { WhenFull } from '../../wire/concurrency.ts'
import type { Environments, Requires } from '../../wire/needs.ts'
import type { Field, FieldType } from '../../wire/records/forms.ts'

import type { TriggerKind } from '../../wire/records/trigger-words.ts'

export type { Field, FieldType }

export interface Output {
  name: string
  type: FieldType
  value: Template
}

/** The names that an expression can use. A phase is looked up when it is named, so that only what is used is loaded. */
export interface Scope {
  inputs: JsonObject
  /** `started_at` in epoch milliseconds; null until the run starts. `environment`: null with the plain settings. */
  run: { id: string; name: string | null; started_at: number | null; environment: string | null }
  phase(name: string): PhaseValue
  item?: Json
  index?: number
  /** The result of the turn that has just ended, in the condition of a `repeat`. */
  result?: TurnResult
  /** The variables of an occasion of a trigger; nothing else can be named then. */
  occasion?: JsonObject
  /** The value of a named secret. Throws when there is none. */
  secret?(name: string): string
  /** The absolute path of a file of the run or the workspace. */
  file?(path: string): string
}

/** A phase as expressions see it. A type instead of an interface, because an interface is not assignable to Json. */
export type PhaseValue = {
  state: string
  reason: string | null
  text: string
  data: Json
  files: { name: string; path: string; bytes: number; sha256: string }[]
  error: { code: string; message: string } | null
}

/** What a turn of a phase with `repeat` gave. */
export type TurnResult = Pick<PhaseValue, 'text' | 'data' | 'files'>

/** A bare CEL expression. Its value has the type that its place requires, such as a bool in `when`. */
export interface Expression {
  readonly source: string
  /** `<file>:<line>:<column>` of the expression, for errors at run time. */
  readonly place: string
  /** The phases that it names. */
  readonly phases: ReadonlySet<string>
  /** Throws a CadreError `invalid_request` whose message begins with the place. */
  evaluate(scope: Scope): Json
}

/**
 * A JSON value with `{{ }}` inside its strings, at any depth. A template alone keeps the type of its value. It gives
 * null where it names a phase that did not complete.
 */
export interface Template {
  readonly place: string
  readonly phases: ReadonlySet<string>
  /** The named secrets and the inputs that it names, as `secrets.<name>` and `inputs.<name>`. */
  readonly given: ReadonlySet<string>
  /** The value, when nothing in it is a template. */
  readonly constant?: Json
  /** The value as it was written, for people. */
  readonly source: Json
  evaluate(scope: Scope): Json
}

export interface Command {
  name: string
  run: string
  env: Template
  timeout?: number
  effect: 'idempotent' | 'once'
}

export interface Review {
  prompt: Template
  reviewers: string[]
  /** Milliseconds. */
  timeout?: number
  /** Absent: messages that say that it waits end with what its commands printed last. */
  share?: false
  inputs: Field[]
}

/** Repeats a phase, turn by turn, until a condition holds. */
export interface Repeating {
  /** Gives a bool. It can also name the `result` of the turn that has just ended. */
  until: Expression
  /** Milliseconds from the end of a turn to the start of the next one. */
  every: number
  /** How many turns there are at most. */
  most: number
}

/** How many entries, or commands, may begin below a phase within a time. */
export interface BeginLimit {
  count: number
  /** Milliseconds. */
  per: number
}

interface PhaseBase {
  name: string
  /** Its position among the team's phases, from 0. Listeners are not counted. */
  index: number
  /** `<file>:<line>:<column>` of the phase. */
  place: string
  /** Indices into `Team.phases`. */
  dependsOn: readonly number[]
  dependants: readonly number[]
  when?: Expression
  always: boolean
  onFailure: 'fail' | 'continue' | 'escalate'
  /** `attempts` counts the first one; `backoff` in milliseconds. */
  retry: { attempts: number; backoff: number }
  repeat?: Repeating
  limit?: BeginLimit
  /** Milliseconds, per attempt. */
  timeout?: number
  /** Whether it executes something itself, and therefore takes a slot. */
  isLeaf: boolean
}

/** What a phase asks of its agent. */
export interface AgentCall {
  /** The reference as written: `issues` or `issues@eu`. */
  agent: string
  action?: string
  /** One template for each entry, in file order. */
  sources: readonly { name: string; entry: Template }[]
  targets: readonly { name: string; entry: Template }[]
  /** The agent's own fields on the phase itself (`title`, `commands`, `project_dir` …). */
  fields: Template
}

export interface StandardPhase extends PhaseBase, AgentCall {
  type: 'standard'
}

export interface GatePhase extends PhaseBase {
  type: 'gate'
  commands: readonly Command[]
  env: Template
  /** What its commands need of a sandbox. */
  needs: readonly string[]
  review?: Review
}

/** What a phase passes to its sub-runs. */
interface SubRuns {
  /** Key of the sub-team in the bundle. */
  team: string
  inputs: Template
  /** How many of its sub-runs may run at once. */
  concurrency: number
}

export interface TeamPhase extends PhaseBase, SubRuns {
  type: 'team'
}

export interface MapPhase extends PhaseBase, SubRuns {
  type: 'map'
  items: Template
  key?: Template
  onItemFailure: 'stop' | 'continue'
}

export type Phase = StandardPhase | GatePhase | TeamPhase | MapPhase
export type PhaseWithSubRuns = Extract<Phase, SubRuns>

export const hasSubRuns = (phase: Phase): phase is PhaseWithSubRuns => 'team' in phase

/** The agents whose phases have `commands`. */
export const COMMANDERS: readonly string[] = ['exec', 'ssh']

/** Whether a phase runs commands. No system can tell what a command has done. */
export const runsCommands = (phase: Phase): boolean =>
  phase.type === 'gate' || (phase.type === 'standard' && COMMANDERS.includes(phase.agent.split('@', 1)[0]!))

/** What a phase asks a person each time that it runs. */
export const reviewOf = (phase: Phase): Review | undefined => ('review' in phase ? phase.review : undefined)

export type EventName =
  | 'on_start'
  | 'on_complete'
  | 'on_fail'
  | 'on_cancel'
  | 'on_escalate'
  | 'on_phase_start'
  | 'on_phase_complete'
  | 'on_phase_fail'

/** A phase that runs only on events. `on` has the options of each event that it listens to. */
export interface Listener extends Pick<AgentCall, 'agent' | 'fields'> {
  name: string
  place: string
  on: Partial<Record<EventName, { when?: Expression; options: Template }>>
}

/** A key that at most `limit` runs hold at once. Runs of different teams share the places of the same key. */
export interface HeldKey {
  /** As written. */
  readonly source: string
  readonly limit: number
  readonly whenFull: WhenFull
  /** The key of a run with these inputs. Throws a CadreError `invalid_request` when it is not a short text. */
  of(inputs: JsonObject, environment: string | null): string
}

/** What may start a team by itself, once somebody has enabled it. */
export interface DeclaredTrigger {
  name: string
  kind: TriggerKind
  /** As `triggers/add` takes them, without the name, the kind and the team. */
  fields: JsonObject
}

export interface Team {
  /** `@scope/name`, of a map in place `@scope/name/phase`. */
  name: string
  version: string
  description: string
  inputs: readonly Field[]
  /**
   * Of the team of a map in place: the further inputs, of which no type is declared, with the `item` and `index` that its
   * expressions name. Null for other teams.
   */
  inPlace: { untyped: readonly string[] } | null
  outputs: readonly Output[]
  /** How many phases of one run may run at once; null means no limit beyond the daemon's slots. */
  concurrency: number | null
  /** The key that a top run of this team holds while it runs. */
  key: HeldKey | null
  /** What it asks of the daemon that runs it, as written. */
  requires: Requires
  /** The environments that its runs may have, and which one they have if nobody says; null where any will do, or none. */
  environments: Environments | null
  /** Milliseconds for the whole run. */
  timeout?: number
  triggers: readonly DeclaredTrigger[]
  phases: readonly Phase[]
  listeners: readonly Listener[]
  /** The named secrets that its expressions use, each once, in file order. */
  secrets: readonly string[]
  /** Place of a phase in `phases`; -1 when there is none of that name. */
  position(phase: string): number
}

/** The place of a team in the package that it came with. */
export interface TeamPlace {
  /** `@scope/name`. */
  name: string
  version: string
  /** The folder of the team in the package; `.` for its root. */
  folder: string
}

/**
 * A team with every sub-team that it can reach, frozen. A run executes its bundle, now and after a restart, whatever
 * happens to the files. `json()` is what is stored, and `id` is its SHA-256.
 */
export interface Bundle {
  readonly id: string
  readonly root: string
  /** The keys of all teams, the root first. */
  keys(): readonly string[]
  /**
   * The team of a key: its folder relative to the root's (`.` for the root), or `@scope/name@version[/folder]`. The key of a
   * map in place is that of the file with `//` and its phase.
   */
  team(key: string): Team
  /** The file in which a team stands, with its text and the key of its own team. */
  file(key: string): { key: string; file: string; text: string }
  /** The absolute folder of a team, its default workspace; null for a package and for files in memory. */
  folder(key: string): string | null
  /** The package that a team came with, whatever the team calls itself; null for a team from a folder of a person. */
  package(key: string): TeamPlace | null
  json(): BundleJson
}

export interface BundleJson {
  root: string
  /** By key, one for each file. */
  teams: Record<string, { file: string; folder: string | null; text: string; refs: Record<string, string> }>
}
