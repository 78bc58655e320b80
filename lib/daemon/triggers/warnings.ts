// What is said to whoever adds, changes or enables a trigger, and forbids nothing: another trigger does the same, its team
// needs what is not set here, or nothing here has the name of the team that it follows.

import { messageOf } from '../../error.ts'
import { type ChainSpec, follows } from '../../firing/chain-kind.ts'
import { sameSource } from '../../firing/changes.ts'
import { bareTeam, type Trigger } from '../../firing/trigger.ts'
import { didYouMean } from '../../text/spelling.ts'
import type { Daemon } from '../runs/daemon.ts'
import { environmentOf, loadTeam, missingSecrets, missingSettings } from '../runs/start-run.ts'
import { type Home, whichTeam } from './at-home.ts'

/** More triggers of one kind than people have. */
const MOST = 1_000
/** So many of the newest runs are looked at for the name that somebody meant. */
const RECENT = 100

export async function warningsOf({ daemon, tables }: Home, trigger: Trigger): Promise<string[]> {
  if (!trigger.enabled) return []
  const { kind, spec } = trigger
  const found = { limit: MOST, offset: 0 }
  const others = tables.triggers.list({ kind, team: bareTeam(spec.team), ...found }).triggers
  return [
    ...sameSource(trigger, others),
    ...(await notSet(daemon, spec)),
    ...(kind === 'chain' ? await unknownTeam(daemon, spec.own as ChainSpec, tables.triggers.list(found).triggers) : []),
  ]
}

/** The settings and secrets that its runs need. */
async function notSet(daemon: Daemon, { team, environment }: Trigger['spec']): Promise<string[]> {
  try {
    const bundle = await loadTeam(daemon, whichTeam(team))
    const chosen = environmentOf(daemon, bundle, environment)
    const missing = [...chosen.problems, ...missingSettings(daemon, bundle, chosen), ...missingSecrets(bundle, chosen)]
    return missing.map(({ message }) => `no run can start yet: ${message}`)
  } catch (error) {
    return [messageOf(error)]
  }
}

/** A name that nothing here has is more often a slip than a team that is still to come. */
async function unknownTeam(daemon: Daemon, own: ChainSpec, triggers: readonly Trigger[]): Promise<string[]> {
  const { runLists } = daemon.engine.store
  const top = { root_only: true, offset: 0 }
  if (runLists.list({ ...top, team: own.after, limit: 1 }).rows.length > 0) return []
  const started = await Promise.all(
    [...new Set(triggers.map(({ spec }) => spec.team))].map(each => nameOf(daemon, each)),
  )
  const ran = runLists.list({ ...top, limit: RECENT }).rows.map(({ team }) => team)
  const known = [...new Set([...started.flat(), ...ran])]
  if (known.some(team => follows(own, team))) return []
  const names = own.after.startsWith('@') ? known : known.map(team => team.slice(team.indexOf('/') + 1))
  return [`no team ${own.after} has run here${didYouMean(own.after, names)}: nothing starts before a run of it ends`]
}

/** None where it cannot be read. */
async function nameOf(daemon: Daemon, team: string): Promise<string[]> {
  if (team.startsWith('@')) return [bareTeam(team)]
  const bundle = await loadTeam(daemon, whichTeam(team)).catch(() => null)
  return bundle ? [bundle.team(bundle.root).name] : []
}
