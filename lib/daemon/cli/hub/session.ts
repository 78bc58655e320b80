// `login` and `logout`, and `realm-token`, with which a daemon enrols.

import { hostname } from 'node:os'
import { CadreError } from '../../../error.ts'
import { commandLine } from '../../../program/called-as.ts'
import { line } from '../../../text/printable.ts'
import { print, printJsonLine, printMessage } from '../../../text/terminal.ts'
import { GenerateToken } from '../../../wire/calls/auth.ts'
import { CreateSession, DeleteSession } from '../../../wire/calls/session.ts'
import { homeFolder } from '../../home/home.ts'
import { HubClient } from '../../link/hub-client.ts'
import { forgetSession, type HubOptions, keepSession, readSession } from '../kit/hub-client.ts'
import { realmIdOf } from '../kit/names.ts'
import { typedSecret } from '../kit/typed-secret.ts'
import type { Options } from './output.ts'

/** Signs in. The password is typed without being shown, or read from stdin. */
export async function login(username: string, { home: given, hub, json }: Options): Promise<void> {
  const home = homeFolder(given)
  const url = hub ?? process.env.CADRE_HUB_URL
  if (!url) throw new CadreError('invalid_request', 'the hub is not known: give --hub, or set CADRE_HUB_URL')
  const client = new HubClient(url, null)
  const password = await typedSecret(`password of ${username}: `)
  const { token } = await client.call(CreateSession, { username, password })
  await keepSession(home, { hub: url, token })
  if (json) printJsonLine({ hub: url, username })
  else print(line`signed in at ${url} as ${username}`)
}

/** Revokes the session. The enrolment of the daemon is not affected. */
export async function logout({ home: given }: HubOptions): Promise<void> {
  const home = homeFolder(given)
  const session = readSession(home)
  if (!session) return void print(line`not signed in`)
  try {
    await new HubClient(session.hub, session.token).call(DeleteSession, {})
  } catch (error) {
    // If the hub no longer knows the session, it has already ended.
    if (!(error instanceof CadreError) || error.code !== 'unauthorized') throw error
  }
  forgetSession(home)
  print(line`signed out of ${session.hub}`)
}

/** Prints a new realm token, with which a daemon enrols (CADRE_REALM_TOKEN). The hub never shows it again. */
export async function realmToken(
  hub: HubClient,
  realm: string | undefined,
  options: Options & { name?: string },
): Promise<void> {
  const minted = await hub.call(GenerateToken, {
    type: 'realm',
    name: options.name ?? `daemon on ${hostname()}`,
    realm_ids: [await realmIdOf(hub, realm)],
  })
  if (options.json) printJsonLine(minted)
  else print(line`${minted.token}`)
  if (process.stdout.isTTY) {
    printMessage(line`to enrol a daemon with it: ${commandLine('enrol', '--hub', hub.url)}`)
  }
}
