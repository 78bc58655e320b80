// Commands that add and change triggers.

import { basename, resolve } from 'node:path'
import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import { createLog } from '../../../log/log.ts'
import type { Field } from '../../../team/team.ts'
import { line } from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { PlanTeam, ValidateTeam } from '../../../wire/calls/teams.ts'
import {
  AddTrigger,
  DisableTrigger,
  EnableTrigger,
  GetTrigger,
  ListTriggers,
  PauseTrigger,
  RemoveTrigger,
  ResumeTrigger,
  UpdateRealmTrigger,
  UpdateTrigger,
} from '../../../wire/calls/triggers.ts'
import type { TriggerRecord } from '../../../wire/records/triggers.ts'
import { tellsOfFailures } from '../backend/account-status.ts'
import type { Callee } from '../backend/home-client.ts'
import { askAboutTeams } from '../backend/team-answers.ts'
import { type PlaceOptions, type TriggerPlace, triggerPlaceOf } from '../backend/trigger-place.ts'
import { isTeamName } from '../runs/run.ts'
import type { Options } from './list.ts'
import { printHowReached, printTrigger, printUntold } from './print.ts'
import { inputsOf, type NewTrigger, type SpecOptions, secretOf, specOf } from './spec.ts'

/** Without what was not given. */
const placeIn = (given: { [K in keyof PlaceOptions]: PlaceOptions[K] | undefined }): PlaceOptions =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))

/** A package stays as it is written; a path is made absolute. A realm has packages only. */
const teamOf = ({ hub }: TriggerPlace, reference: string): string =>
  hub || isTeamName(reference) ? reference : resolve(reference)
const whichOf = (team: string) => (team.startsWith('/') ? { path: team } : { team })

/** The inputs that a team declares, and its name. */
async function readTeam(
  { home, hub }: TriggerPlace,
  team: string,
): Promise<{ inputs: readonly Field[]; name?: string }> {
  if (!hub) return askAboutTeams(home, createLog({ level: 'warn' }), all => all.call(ValidateTeam, whichOf(team)))
  const [{ DownloadTeam }, { inputsOf }] = await Promise.all([
    import('../../../wire/calls/packages.ts'),
    import('../teams/package.ts'),
  ])
  const { files, name } = await hub.call(DownloadTeam, { team })
  return { inputs: inputsOf(files), name }
}

export async function addTrigger(
  kind: NewTrigger['kind'],
  reference: string,
  { json, name, secret, home, realm, hub, ...options }: Options & SpecOptions & { name?: string; secret?: string },
): Promise<void> {
  const place = await triggerPlaceOf(placeIn({ home, realm, hub }))
  const team = teamOf(place, reference)
  const read = await readTeam(place, team)
  const inputs = await inputsOf(read.inputs, options)
  const spec = { ...(await specOf(options, place)), team, inputs, kind }
  const free = name ?? (await freeName(place, read.name ?? basename(team), kind))
  const shared = secret === undefined ? {} : { secret: await secretOf('--secret', secret) }
  const added = await place.change(all => all.call(AddTrigger, { ...spec, ...shared, name: free }))
  printTrigger(added, { json, place })
  printHowReached(added, place)
  if (!json && added.catch_up === 'none')
    printMessage(
      line`a slot missed by more than ${added.late_after ?? '5m'} is skipped; --catch-up last starts it later`,
    )
  if (!place.hub && !(await tellsOfFailures(place.home))) printUntold()
}

/** The last part of the name of a team, with a number when another trigger has it. */
async function freeName({ ask }: TriggerPlace, team: string, kind: string): Promise<string> {
  const part = team.split('/').at(-1)!.toLowerCase()
  const slug =
    part
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replace(/^-+/, '')
      .slice(0, 58)
      .replace(/-+$/, '') || kind
  const taken = await ask(namesOf)
  for (let number = 1; ; number++) {
    const name = number === 1 ? slug : `${slug}-${number}`
    if (!taken.has(name)) return name
  }
}

async function namesOf(all: Callee): Promise<Set<string>> {
  const names = new Set<string>()
  for (;;) {
    const { triggers, total } = await all.call(ListTriggers, { limit: 100, offset: names.size })
    for (const { name } of triggers) names.add(name)
    if (triggers.length === 0 || names.size >= total) return names
  }
}

export async function updateTrigger(
  name: string,
  {
    home,
    realm,
    hub,
    json,
    name: renamed,
    team: reference,
    addSecret,
    expireSecret,
    keep,
    ...options
  }: Options &
    SpecOptions & { name?: string; team?: string; addSecret?: string; expireSecret?: string; keep?: boolean },
): Promise<void> {
  const place = await triggerPlaceOf(placeIn({ home, realm, hub }))
  const spec = await specOf(options, place)
  const was = await place.ask(all => all.call(GetTrigger, { name }))
  const team = reference === undefined ? was.team : teamOf(place, reference)
  const isGiven = options.input !== undefined || options.inputs !== undefined
  const changes = {
    ...spec,
    ...(reference !== undefined && { team }),
    ...(renamed !== undefined && { name: renamed }),
    ...(keep && { keep }),
    ...(addSecret !== undefined && { add_secret: await secretOf('--add-secret', addSecret) }),
    ...(expireSecret !== undefined && { expire_secret: expireSecret }),
    ...(isGiven && { inputs: await changedInputs(was.inputs, (await readTeam(place, team)).inputs, options) }),
  }
  if (Object.keys(changes).length === 0) {
    throw new CadreError('invalid_request', 'there is nothing to change: give an option, such as --cron')
  }
  const { id: trigger_id, revision } = was
  const updated = await place.change(all => all.call(UpdateTrigger, { trigger_id, revision, ...changes }))
  printTrigger(updated, { json, place })
}

type Change = (all: Callee) => Promise<TriggerRecord>

async function change({ json, ...where }: Options, work: Change, isKnown = true): Promise<void> {
  const place = await triggerPlaceOf(where)
  printTrigger(await place.change(work), { json, place, isKnown })
}

/** Takes a trigger over, whose runs start with the rights of the caller from then on. */
export const takeTrigger = (name: string, options: Options): Promise<void> =>
  change(options, async all => {
    const { id: trigger_id } = await all.call(GetTrigger, { name })
    return all.call(UpdateRealmTrigger, { trigger_id, owner: 'me' })
  })

export const pauseTrigger = (name: string, { reason, ...options }: Options & { reason?: string }): Promise<void> =>
  change(options, all => all.call(PauseTrigger, { name, ...(reason !== undefined && { reason }) }))

export const resumeTrigger = (
  name: string,
  { catchUp, ...options }: Options & Pick<SpecOptions, 'catchUp'>,
): Promise<void> => change(options, all => all.call(ResumeTrigger, { name, ...(catchUp && { catch_up: catchUp }) }))

/** A file says all inputs; options change some. What the team does not declare any more goes. */
async function changedInputs(was: JsonObject, fields: readonly Field[], options: SpecOptions): Promise<JsonObject> {
  const read = await inputsOf(fields, options)
  if (options.inputs !== undefined) return read
  const declared = Object.entries(was).filter(([name]) => fields.some(field => field.name === name))
  return { ...Object.fromEntries(declared), ...read }
}

/** A trigger, or with a name what a team declares under it. */
export async function enableTrigger(
  trigger: string,
  name: string | undefined,
  { secret: given, ...options }: Options & { secret?: string },
): Promise<void> {
  if (name === undefined && /^[@.~]|\//.test(trigger)) return mustNameOne(trigger, options)
  if (name === undefined) return change(options, all => all.call(EnableTrigger, { name: trigger }))
  const secret = given === undefined ? {} : { secret: await secretOf('--secret', given) }
  const team = teamOf(await triggerPlaceOf(options), trigger)
  return change(options, all => all.call(EnableTrigger, { team, name, ...secret }), false)
}

/** Throws `invalid_request` with the names of what a team declares. */
async function mustNameOne(reference: string, options: Options): Promise<never> {
  const place = await triggerPlaceOf(options)
  const team = teamOf(place, reference)
  const declared = place.hub ? null : await declaredIn(place.home, team)
  if (declared?.length === 0)
    throw new CadreError('invalid_request', `${reference} declares no triggers in its team.yml`)
  const which = declared ? `${declared.join(', ')}, such as` : 'those in its team.yml, as'
  const command = place.command('triggers', 'enable', reference, declared?.[0] ?? 'NAME')
  throw new CadreError('invalid_request', `say which of its triggers: ${which}: ${command}`)
}

async function declaredIn(home: string, team: string): Promise<string[]> {
  const log = createLog({ level: 'warn' })
  const { triggers = [] } = await askAboutTeams(home, log, all => all.call(PlanTeam, whichOf(team)))
  return triggers.map(({ name }) => name)
}

export const disableTrigger = (name: string, options: Options): Promise<void> =>
  change(options, all => all.call(DisableTrigger, { name }))

export async function removeTrigger(name: string, { json, ...where }: Options): Promise<void> {
  const { change } = await triggerPlaceOf(where)
  const removed = await change(all => all.call(RemoveTrigger, { name }))
  if (json) printJson(removed)
  else print(line`removed ${removed.name}`)
}
