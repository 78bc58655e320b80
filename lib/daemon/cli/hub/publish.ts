// `publish` and `dispatch`: a team becomes a package, and runs on a daemon of a realm.

import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import { commandLine } from '../../../program/called-as.ts'
import { createPaint, line } from '../../../text/printable.ts'
import { print, printJsonLine, printMessage } from '../../../text/terminal.ts'
import { unseenNotes } from '../../../text/unseen.ts'
import { DispatchRun } from '../../../wire/calls/dispatch.ts'
import { DownloadTeam, PublishTeam } from '../../../wire/calls/packages.ts'
import { AddTeam } from '../../../wire/calls/realms.ts'
import { NOT_LISTED } from '../../../wire/reasons.ts'
import { homeFolder } from '../../home/home.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { backendOf } from '../backend/home-backend.ts'
import { EXIT } from '../kit/exit.ts'
import { type InputOptions, readInputs } from '../kit/inputs.ts'
import { realmIdOf } from '../kit/names.ts'
import { watch } from '../runs/watch.ts'
import { inputsOf, readPackage, signed } from '../teams/package.ts'
import type { Options } from './output.ts'

export interface PublishOptions extends Options {
  scope?: string
  /** False publishes unsigned, although there is a key. A hub that is older than signatures refuses signed packages. */
  sign?: boolean
  /** Also put the team on this realm's list, so that it can be dispatched there. */
  realm?: string
}

export async function publish(hub: HubClient, path: string, options: PublishOptions): Promise<void> {
  const { scope, realm, sign, json } = options
  const files = await readPackage(path, scope)
  // Whoever reviews the files does not see these.
  const unseen = files.flatMap(file => unseenNotes(file.path, Buffer.from(file.content_base64, 'base64')))
  const paint = createPaint(process.stderr)
  printMessage(unseen.map(note => line`${paint.yellow('note')}  ${note}`))
  const signature = sign === false ? null : signed(homeFolder(options.home), files)
  const realm_id = realm === undefined ? null : await realmIdOf(hub, realm)
  const published = await hub.call(
    PublishTeam,
    { files, ...(scope !== undefined && { scope }), ...(signature && { signature }) },
    { timeout: 120_000 },
  )
  if (realm_id) await hub.call(AddTeam, { realm_id, team: published.name })
  if (json) return void printJsonLine({ ...published, notes: unseen })
  print(line`${published.name}@${published.version}  ${published.sha256}`)
  if (signature) printMessage(line`signed with ${signature.key}`)
  const next =
    realm === undefined
      ? `to run it, put it on a realm's list: ${commandLine('realms', 'add-team', 'REALM', published.name)}`
      : `to run it: ${commandLine('dispatch', published.name, '--realm', realm)}`
  printMessage(line`${next}`)
}

export interface DispatchOptions extends Options, InputOptions {
  /** Needed only if there are several. */
  realm?: string
  name?: string
  workspace?: string
  env?: string
  /** Follow the run to its end. */
  wait?: boolean
}

/** With `wait`, returns the exit code of the run. */
export async function dispatch(hub: HubClient, team: string, options: DispatchOptions): Promise<number> {
  const realm_id = await realmIdOf(hub, options.realm)
  const { name, workspace, env, json = false } = options
  const order = {
    realm_id,
    team,
    inputs: await givenInputs(hub, team, options),
    ...(name !== undefined && { run_name: name }),
    ...(workspace !== undefined && { workspace }),
    ...(env !== undefined && { environment: env }),
  }
  const job = await hub.call(DispatchRun, order).catch(error => {
    throw withCommand(error, options.realm ?? realm_id, team)
  })
  const summary = line`${job.run_id}  ${job.state}${job.waiting_for ? `, waiting for ${job.waiting_for}` : ''}`
  if (options.wait) {
    printMessage(summary)
    const { home, hub: url = true } = options
    const backend = await backendOf({ ...(home !== undefined && { home }), hub: url })
    const runner = (await backend.served())!
    return watch(runner, job.run_id, { backend, json, untilEnd: true, unasked: 'cancel' })
  }
  if (json) printJsonLine(job)
  else print(summary)
  return EXIT.done
}

/** For a team that is not on the list of the realm, the hub names its route. This names the command instead. */
function withCommand(error: unknown, realm: string, team: string): unknown {
  if (!(error instanceof CadreError) || error.reason !== NOT_LISTED) return error
  const route = AddTeam.path.slice('/v1/'.length)
  const [name] = /^@[^@]+/.exec(team) ?? [team]
  const command = `\`${commandLine('realms', 'add-team', realm, name)}\``
  return new CadreError(error.code, error.message.replace(route, command), { reason: NOT_LISTED })
}

/** The inputs of `-i`. They are text until the team's declaration says what type they have. */
async function givenInputs(hub: HubClient, team: string, options: InputOptions): Promise<JsonObject> {
  if (!options.input) return readInputs([], options)
  const { files } = await hub.call(DownloadTeam, { team })
  return readInputs(inputsOf(files), options)
}
