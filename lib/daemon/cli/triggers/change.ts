// Commands that add and change triggers.

import { basename, resolve } from 'node:path'
import { CadreError } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { line } from '../../../text/printable.ts'
import { print, printJson } from '../../../text/terminal.ts'
import { ValidateTeam } from '../../../wire/calls/teams.ts'
import {
  AddTrigger,
  DisableTrigger,
  EnableTrigger,
  GetTrigger,
  ListTriggers,
  PauseTrigger,
  RemoveTrigger,
  ResumeTrigger,
  UpdateTrigger,
} from '../../../wire/calls/triggers.ts'
import type { TriggerRecord } from '../../../wire/records/triggers.ts'
import { homeFolder } from '../../home/home.ts'
import type { Callee } from '../backend/home-client.ts'
import { askAboutTeams } from '../backend/team-answers.ts'
import { askAboutTriggers, changeTriggers } from '../backend/trigger-answers.ts'
import type { Options } from './list.ts'
import { printTrigger } from './print.ts'
import { inputsOf, type NewTrigger, type SpecOptions, secretOf, specOf } from './spec.ts'

/** A package stays as it is written; a path is made absolute. */
const teamOf = (reference: string): string => (/^@[^/]+\/[^/]+$/.test(reference) ? reference : resolve(reference))
const whichOf = (team: string) => (team.startsWith('/') ? { path: team } : { team })

/** The inputs that a team declares, and its name. */
function readTeam(home: string, team: string) {
  return askAboutTeams(home, createLog({ level: 'warn' }), all => all.call(ValidateTeam, whichOf(team)))
}

export async function addTrigger(
  kind: NewTrigger['kind'],
  reference: string,
  { home: given, json, name, secret, ...options }: Options & SpecOptions & { name?: string; secret?: string },
): Promise<void> {
  const home = homeFolder(given)
  const team = teamOf(reference)
  const read = await readTeam(home, team)
  const inputs = await inputsOf(read.inputs, options)
  const spec = { ...specOf(options), team, inputs, kind }
  const free = name ?? (await freeName(home, read.name ?? basename(team), kind))
  const shared = secret === undefined ? {} : { secret: await secretOf('--secret', secret) }
  const added = await changeTriggers(home, all => all.call(AddTrigger, { ...spec, ...shared, name: free }))
  printTrigger(added, { json, home })
}

/** The last part of the name of a team, with a number when another trigger has it. */
async function freeName(home: string, team: string, kind: string): Promise<string> {
  const part = team.split('/').at(-1)!.toLowerCase()
  const slug =
    part
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replace(/^-+/, '')
      .slice(0, 58)
      .replace(/-+$/, '') || kind
  const taken = await askAboutTriggers(home, namesOf)
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
    home: given,
    json,
    name: renamed,
    team: reference,
    addSecret,
    expireSecret,
    ...options
  }: Options & SpecOptions & { name?: string; team?: string; addSecret?: string; expireSecret?: string },
): Promise<void> {
  const home = homeFolder(given)
  const spec = specOf(options)
  const was = await askAboutTriggers(home, all => all.call(GetTrigger, { name }))
  const team = reference === undefined ? was.team : teamOf(reference)
  const isGiven = options.input !== undefined || options.inputs !== undefined
  const changes = {
    ...spec,
    ...(reference !== undefined && { team }),
    ...(renamed !== undefined && { name: renamed }),
    ...(addSecret !== undefined && { add_secret: await secretOf('--add-secret', addSecret) }),
    ...(expireSecret !== undefined && { expire_secret: expireSecret }),
    ...(isGiven && { inputs: { ...was.inputs, ...(await inputsOf((await readTeam(home, team)).inputs, options)) } }),
  }
  if (Object.keys(changes).length === 0) {
    throw new CadreError('invalid_request', 'nothing is to be changed: give an option, such as --cron')
  }
  const { id: trigger_id, revision } = was
  const updated = await changeTriggers(home, all => all.call(UpdateTrigger, { trigger_id, revision, ...changes }))
  printTrigger(updated, { json, home })
}

type Change = (all: Callee) => Promise<TriggerRecord>

async function change({ home: given, json }: Options, work: Change): Promise<void> {
  const home = homeFolder(given)
  printTrigger(await changeTriggers(home, work), { json, home })
}

export const pauseTrigger = (name: string, { reason, ...options }: Options & { reason?: string }): Promise<void> =>
  change(options, all => all.call(PauseTrigger, { name, ...(reason !== undefined && { reason }) }))

export const resumeTrigger = (
  name: string,
  { catchUp, ...options }: Options & Pick<SpecOptions, 'catchUp'>,
): Promise<void> => change(options, all => all.call(ResumeTrigger, { name, ...(catchUp && { catch_up: catchUp }) }))

/** A trigger, or with a name what a team declares under it. */
export async function enableTrigger(
  trigger: string,
  name: string | undefined,
  { secret: given, ...options }: Options & { secret?: string },
): Promise<void> {
  if (name === undefined) return change(options, all => all.call(EnableTrigger, { name: trigger }))
  const secret = given === undefined ? {} : { secret: await secretOf('--secret', given) }
  return change(options, all => all.call(EnableTrigger, { team: teamOf(trigger), name, ...secret }))
}

export const disableTrigger = (name: string, options: Options): Promise<void> =>
  change(options, all => all.call(DisableTrigger, { name }))

export async function removeTrigger(name: string, { home, json }: Options): Promise<void> {
  const removed = await changeTriggers(homeFolder(home), all => all.call(RemoveTrigger, { name }))
  if (json) printJson(removed)
  else print(line`removed ${removed.name}`)
}
