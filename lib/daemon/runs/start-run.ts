// Starts a run: the team is read and checked with everything that it reaches. Everything that is missing (inputs,
// settings of every agent at any depth, the workspace) is reported at once, before anything starts.

import { isAbsolute, join, resolve } from 'node:path'
import { CadreError, type Detail, isLasting } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import type { JsonObject } from '../../json.ts'
import { storedTraceparent } from '../../log/trace.ts'
import type { RunRecord } from '../../run/engine.ts'
import type { Borrower, Scope, SecretUser } from '../../settings/settings.ts'
import {
  accountsOf,
  agentRefs,
  type Bundle,
  inputsFor,
  type LoadOptions,
  loadBundle,
  secretReader,
  type Team,
  teamsOf,
} from '../../team/team.ts'
import type { StartedBy } from '../../wire/records/started-by.ts'
import type { Daemon } from './daemon.ts'
import { type Chosen, environmentFor } from './environment.ts'
import { existingFolder, type Namer } from './workspaces.ts'

export interface RunRequest {
  /** `@scope/name[@range]`. */
  team?: string
  /** Absolute path of a folder with a team.yml, or of the file. */
  path?: string
  inputs?: JsonObject
  run_name?: string | null
  /** The id, name or absolute path of a workspace. The default is the team's folder. */
  workspace?: string | null
  /** An environment of settings.yml. The default is that of the team. */
  environment?: string | null
}

/** What is needed to read a team and to say what it lacks. */
export type Stock = Pick<Daemon, 'catalogue' | 'settings' | 'packages' | 'bundles' | 'sandboxes'> &
  Partial<Pick<Daemon, 'renewAgents'>>

export interface Origin {
  /** Started on this machine, so paths are allowed. */
  local: boolean
  /** Who starts it, for the audit log. */
  actor: string
  /** Who starts it, for its record. */
  startedBy?: StartedBy
  /** The header of the call, or of the one that the hub took. One that is not valid counts as none. */
  traceparent?: string | undefined
  /** The hub asks, which may name what is offered to it. */
  dispatched?: boolean
  /** The id from dispatch, or from the command that starts the run, so that the same run is started only once. */
  runId?: RunId
  /** Whether the run is reported to the hub. By default it is if the realm lists the team. */
  synced?: boolean
  /**
   * Nobody hears the answer: what was read and cannot begin becomes a run that has failed, whose reason is `not_started`
   * and whose listeners are told.
   */
  unattended?: boolean
  /** Changes other rows in the transaction that starts the run. */
  also?(runId: RunId): void
}

/** Starts a run. Throws `invalid_request` with everything that is wrong. */
export async function startRun(daemon: Daemon, request: RunRequest, origin: Origin): Promise<RunRecord> {
  const besides = origin.unattended ? undefined : (teams: readonly Team[]) => lacking(daemon, request, teams)
  return startBundle(daemon, await loadTeam(daemon, request, besides), request, origin)
}

/** Starts a run of a team that has already been loaded. */
export async function startBundle(
  daemon: Daemon,
  bundle: Bundle,
  request: RunRequest,
  origin: Origin,
): Promise<RunRecord> {
  if (origin.runId !== undefined && daemon.engine.store.runs.attempt(origin.runId) !== null) {
    await daemon.openRuns.continueTree(origin.runId)
    return daemon.engine.record(origin.runId)
  }
  const { values, problems } = inputsFor(bundle.team(bundle.root).inputs, request.inputs ?? {})
  const { name, version } = bundle.team(bundle.root)
  const chosen = environmentOf(daemon, bundle, request.environment)
  const runId = origin.runId ?? daemon.engine.store.runs.newId()
  const target = `${name}@${version} as ${runId}${namesIn(values)}`
  const traceparent = storedTraceparent(origin.traceparent)
  const start = {
    bundle,
    inputs: values,
    runName: request.run_name ?? null,
    workspace: null,
    environment: chosen.environment,
    review: chosen.review,
    fromPath: origin.local && request.path !== undefined,
    synced: origin.synced ?? daemon.lists(name),
    runId,
    isNewId: origin.runId === undefined,
    ...(origin.startedBy && { startedBy: daemon.mask(origin.startedBy) }),
    ...(traceparent !== null && { traceparent }),
  }
  const also = () => {
    daemon.audit.write({ actor: origin.actor, action: 'runs/start', target })
    origin.also?.(runId)
  }
  const fails = (error: unknown): CadreError => {
    if (!origin.unattended || !isLasting(error)) throw error
    return error
  }
  const lacks = await mustHaveAll(daemon, bundle, chosen, problems, start.fromPath).then(() => null, fails)
  const begin = async () =>
    daemon.engine.start(
      { ...start, workspace: await workspaceOf(daemon, bundle, request.workspace ?? null, origin) },
      also,
    )
  if (lacks) return notStarted(lacks)
  // A folder or a file that a hub may not name is refused, and makes no run here.
  return origin.dispatched ? begin() : begin().catch(error => notStarted(fails(error)))

  function notStarted({ code, message }: CadreError): Promise<RunRecord> {
    return daemon.engine.start({ ...start, notStarted: daemon.mask({ code, message, run_id: runId }) }, also)
  }
}

/** Throws `invalid_request` with everything that the run lacks. */
async function mustHaveAll(
  daemon: Daemon,
  bundle: Bundle,
  chosen: Chosen,
  problems: readonly Detail[],
  fromPath: boolean,
): Promise<void> {
  // Commands that read secrets wait for the approval, as everything of the run does.
  if (chosen.scope && !chosen.review) await askCommands(chosen.scope, bundle)
  const missing = [
    ...problems,
    ...chosen.problems,
    ...missingSettings(daemon, bundle, chosen),
    ...missingSecrets(bundle, chosen),
    ...missingLends(bundle, chosen, fromPath),
  ]
  if (missing.length === 0) return
  const list = missing.map(({ message }) => message).join('; ')
  throw new CadreError('invalid_request', `the run cannot start: ${list}`, { details: missing })
}

/** The names of inputs, never their values. */
function namesIn(inputs: JsonObject): string {
  const names = Object.keys(inputs)
  return names.length === 0 ? '' : `, inputs ${names.join(', ')}`
}

/** Which team is read: of a folder, texts that are not saved may take the place of its files, by their names. */
export interface Named extends Pick<RunRequest, 'team' | 'path'> {
  files?: Readonly<Record<string, string>>
}

/** The team that a request names. Throws `invalid_request` with every problem of its files, `not_found`. */
export async function loadTeam(
  stock: Stock,
  { team, path, files }: Named,
  besides?: LoadOptions['besides'],
): Promise<Bundle> {
  await stock.renewAgents?.()
  const resolve = (ref: string) => stock.packages.resolve(ref)
  const options = { agents: stock.catalogue, resolve, ...(besides && { besides }) }
  if (team !== undefined && files)
    throw new CadreError('invalid_request', '`files` are those of a `path`, not of a `team`')
  if ((team === undefined) === (path === undefined)) {
    throw new CadreError('invalid_request', 'expected either `team` (@scope/name) or `path`', {
      details: [{ path: '/team', message: 'set this, or `path`' }],
    })
  }
  if (path !== undefined) {
    if (files && isAbsolute(path)) return loadBundle(path, { ...options, anyFile: true, readFile: drafts(path, files) })
    if (isAbsolute(path)) return stock.bundles.load(path, { ...options, anyFile: true })
    throw new CadreError('invalid_request', `${path} must be an absolute path`, {
      details: [{ path: '/path', message: 'must be an absolute path' }],
    })
  }
  const found = await stock.packages.resolve(team!)
  if (!found) throw new CadreError('not_found', `there is no team ${team} on this daemon or on its hub`)
  return stock.bundles.load(found, options)
}

/** Reads these texts in place of the files of a folder. Throws `invalid_request` where there is no folder. */
function drafts(path: string, files: Readonly<Record<string, string>>): NonNullable<LoadOptions['readFile']> {
  existingFolder(path, '/path')
  const texts = new Map(Object.entries(files).map(([name, text]) => [join(resolve(path), name), text]))
  return async (file, fromDisk) => {
    const text = texts.get(file)
    return text === undefined ? fromDisk() : new TextEncoder().encode(text)
  }
}

/**
 * What a run needs besides its team: inputs of the root, which is the first of `teams`, and settings of every agent.
 */
function lacking(stock: Stock, { inputs = {}, environment }: RunRequest, teams: readonly Team[]): Detail[] {
  const { scope, problems } = environmentFor(stock.settings, teams, environment)
  return [
    ...inputsFor(teams[0]?.inputs ?? [], inputs).problems,
    ...problems,
    ...missingOf(stock, scope, agentsOf(teams)),
  ]
}

/** In which environment a run of a bundle works. */
export function environmentOf(stock: Stock, bundle: Bundle, asked?: string | null): Chosen {
  return environmentFor(stock.settings, usesOf(bundle).teams, asked)
}

/** One line for each setting that an agent of the bundle lacks; none where the environment is not known. */
export function missingSettings(stock: Stock, bundle: Bundle, { scope }: Pick<Chosen, 'scope'>): Detail[] {
  return missingOf(stock, scope, usesOf(bundle).agents)
}

/** One line for each secret that a team of the bundle cannot read; none where the environment is not known. */
export function missingSecrets(bundle: Bundle, { scope }: Pick<Chosen, 'scope'>): Detail[] {
  return scope?.missingSecrets(secretUsers(bundle)) ?? []
}

/**
 * One line for each agent in whose name a team of the bundle may send no requests. `fromPath`: the run was started on this
 * machine from a path.
 */
export function missingLends(bundle: Bundle, { scope }: Pick<Chosen, 'scope'>, fromPath = true): Detail[] {
  const teams = usesOf(bundle).accounts.map(team => ({ ...team, fromPath: team.fromPath && fromPath }))
  return scope?.missingLends(teams) ?? []
}

/** The teams of a bundle with the named secrets that they use. A team without a folder is a package. */
export function secretUsers(bundle: Bundle): readonly SecretUser[] {
  return usesOf(bundle).secrets
}

interface Uses {
  /** The root first. */
  teams: readonly Team[]
  agents: readonly string[]
  secrets: readonly SecretUser[]
  accounts: readonly Borrower[]
}

const known = new WeakMap<Bundle, Uses>()

/** What the teams of a bundle use, found once, because a bundle does not change. */
function usesOf(bundle: Bundle): Uses {
  const found = known.get(bundle)
  if (found) return found
  const teams = teamsOf(bundle)
  const uses = {
    teams: [bundle.team(bundle.root), ...teams.map(([, team]) => team)],
    agents: agentsOf(teams.map(([, team]) => team)),
    secrets: teams.map(([key, team]) => ({ ...secretReader(bundle, key), secrets: secretsOf(team) })),
    accounts: teams.map(([key, team]) => ({ ...secretReader(bundle, key), accounts: accountsOf(team) })),
  }
  known.set(bundle, uses)
  return uses
}

const agentsOf = (teams: readonly Team[]): string[] => [...new Set(teams.flatMap(agentRefs))].sort()

function secretsOf(team: Team): readonly string[] {
  return 'secrets' in team ? (team.secrets as readonly string[]) : []
}

/**
 * Runs the commands that read secrets, so that a failing one is reported before the run starts, with everything else
 * that is missing.
 */
async function askCommands(scope: Scope, bundle: Bundle): Promise<void> {
  const { agents, secrets } = usesOf(bundle)
  await Promise.all([scope.prepare(agents.map(reference => `agents.${reference}`)), scope.prepareSecrets(secrets)])
}

function missingOf(stock: Stock, scope: Scope | null, agents: readonly string[]): Detail[] {
  return agents.flatMap(reference => {
    const definition = stock.catalogue.get(reference)
    return definition && scope ? scope.problems(reference, definition) : []
  })
}

/** The folder to work in, registered as a workspace. Null means that the run gets an empty folder of its own. */
async function workspaceOf(
  daemon: Daemon,
  bundle: Bundle,
  reference: string | null,
  { local, dispatched = false }: Origin,
): Promise<string | null> {
  const by: Namer = local ? 'here' : dispatched ? 'hub' : 'elsewhere'
  const folder = reference === null ? bundle.folder(bundle.root) : daemon.workspaces.folder(reference, by)
  return folder === null ? null : daemon.workspaces.use(folder)
}
