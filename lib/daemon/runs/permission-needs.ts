// Which permissions the teams of a home need: those in its registered workspaces, and those of the runs that began in the
// last 30 days. A permission that a credential lacks is a fault only where one of them needs it.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Catalogue } from '../../agent/catalogue.ts'
import { CadreError, messageOf } from '../../error.ts'
import { filesBelow } from '../../files/files-below.ts'
import { isObject } from '../../json.ts'
import type { Log } from '../../log/log.ts'
import { type Executed, Store } from '../../run/engine.ts'
import type { Settings } from '../../settings/settings.ts'
import { type Bundle, bundleFromJson, loadBundle, type Need, permissionNeeds, teamsOf } from '../../team/team.ts'
import type { Finding } from '../../wire/calls/agents.ts'
import { TEAM_FILE } from '../../wire/records/package-files.ts'
import { Packages } from '../packages/packages.ts'
import { environmentFor } from './environment.ts'
import { Workspaces } from './workspaces.ts'

/** What is known of a home. */
export interface HomeParts {
  home: string
  catalogue: Catalogue
  settings: Settings
  log: Log
  /** Its runs and workspaces; null where there are none yet. */
  db: Database | null
}

/** What a phase needs in an environment of settings.yml; null: with the plain settings. */
type NeedThere = Need & { environment: string | null }

interface Needs {
  all: NeedThere[]
  /** The files and folders that were not read, or not as a whole, and why. */
  unread: { what: string; why: string }[]
}

const LATELY_MS = 30 * 86_400_000
/** More files of a workspace are not looked at. */
const MOST_FILES = 5_000
/** After so many files other work has its turn. */
const FILES_AT_ONCE = 200

export async function needsOfTeams(parts: HomeParts): Promise<Needs> {
  const needs: Needs = { all: [], unread: [] }
  if (parts.db) {
    await addWorkspaces(parts, parts.db, needs)
    await addRuns(parts, parts.db, needs)
  }
  return needs
}

async function addWorkspaces(parts: HomeParts, db: Database, needs: Needs): Promise<void> {
  const { home, log, settings } = parts
  const files = new Set<string>()
  for (const folder of new Workspaces(db).paths()) await reading(folder, needs, () => findTeams(folder, files))
  // Without a source, packages are those that are installed. No hub is called, because a daemon looks every minute.
  const packages = new Packages(home, { trust: () => settings.packageTrust(), log })
  const options = { agents: parts.catalogue, resolve: (ref: string) => packages.resolve(ref), anyFile: true }
  for (const file of files) {
    await reading(file, needs, async () => {
      const bundle = await loadBundle(file, options)
      needs.all.push(...needsIn(parts, bundle, environmentsOf(parts, bundle)))
    })
  }
}

async function addRuns(parts: HomeParts, db: Database, needs: Needs): Promise<void> {
  const { runLists, bundles } = new Store(db)
  const executed = new Map<string, Executed>()
  for (const part of runLists.begunSince(Date.now() - LATELY_MS)) {
    for (const each of part) executed.set(JSON.stringify(each), each)
    await Bun.sleep(0)
  }
  for (const { bundle_id, team, environment } of executed.values()) {
    await reading(`a run of ${team}`, needs, async () => {
      await Bun.sleep(0)
      // It is gone if the run was deleted meanwhile.
      const text = bundles.get(bundle_id)
      if (text !== null) needs.all.push(...needsIn(parts, bundleFromJson(JSON.parse(text)), [environment]))
    })
  }
}

async function reading(what: string, { unread }: Needs, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    const [first, ...more] = (error instanceof CadreError && error.details) || [{ message: messageOf(error) }]
    unread.push({ what, why: first!.message + (more.length > 0 ? `, and ${more.length} more` : '') })
  }
}

async function findTeams(folder: string, found: Set<string>): Promise<void> {
  if (!existsSync(folder)) return
  let count = 0
  for (const file of filesBelow(folder, '')) {
    if (TEAM_FILE.test(file)) found.add(join(folder, file))
    if (++count % FILES_AT_ONCE === 0) await Bun.sleep(0)
    if (count > MOST_FILES) throw new Error(`it has more than ${MOST_FILES} files, and the others were not looked at`)
  }
}

/** Where runs of a team may work. */
function environmentsOf({ settings }: HomeParts, bundle: Bundle): (string | null)[] {
  const teams = [bundle.team(bundle.root), ...teamsOf(bundle).map(([, team]) => team)]
  return [null, ...settings.environments()].filter(asked => {
    const { environment, problems } = environmentFor(settings, teams, asked)
    return environment === asked && problems.length === 0
  })
}

function needsIn({ catalogue }: HomeParts, bundle: Bundle, environments: readonly (string | null)[]): NeedThere[] {
  const needs = teamsOf(bundle).flatMap(([, team]) => permissionNeeds(catalogue, team))
  return environments.flatMap(environment => needs.map(need => ({ ...need, environment })))
}

/**
 * Sorts what the credential of an agent lacks. It was looked at with the settings of an environment; null: with the plain
 * ones, which runs in an environment may have, too.
 */
export function sortMissing(
  missing: readonly string[],
  { agent, environment }: { agent: string; environment: string | null },
  { all }: Needs,
  settings: Settings,
): Pick<Finding, 'missing' | 'needed_by' | 'unneeded'> {
  const own = all.filter(
    need =>
      need.agent === agent &&
      (need.environment === environment || (environment === null && inherits(settings, need.environment, agent))),
  )
  const needed_by = missing.flatMap(permission => {
    const by = own.filter(({ permissions }) => permissions?.includes(permission) ?? true)
    const places = new Map(by.map(({ team, phase }) => [`${team} ${phase}`, { permission, team, phase }]))
    return [...places.values()]
  })
  const isNeeded = (permission: string) => needed_by.some(each => each.permission === permission)
  const unneeded = missing.filter(permission => !isNeeded(permission))
  return {
    missing: missing.filter(isNeeded),
    ...(needed_by.length > 0 && { needed_by }),
    ...(unneeded.length > 0 && { unneeded }),
  }
}

/** Whether runs in an environment have the plain settings of an agent. */
function inherits(settings: Settings, environment: string | null, agent: string): boolean {
  if (environment === null || settings.value(`environments.${environment}.inherit`) !== true) return false
  const own = settings.value(`environments.${environment}.agents`)
  return !isObject(own) || !Object.hasOwn(own, agent)
}
