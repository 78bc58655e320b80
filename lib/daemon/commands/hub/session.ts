// `login` and `logout`, and `realm-token`, with which a daemon enrols.

import { hostname } from 'node:os'
import { commandLine } from '../../../called-as.ts'
import { CadreError } from '../../../error.ts'
import { CreateSession, DeleteSession, GenerateToken } from '../../../wire/hub-calls.ts'
import { homeFolder } from '../../home.ts'
import { HubClient } from '../../link/link.ts'
import { forgetSession, type HubOptions, hubOf, keepSession, readSession } from '../hub-client.ts'
import { typedSecret } from '../typed-secret.ts'
import { realmIdOf } from './names.ts'
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
  process.stdout.write(json ? `${JSON.stringify({ hub: url, username })}\n` : `signed in at ${url} as ${username}\n`)
}

/** Revokes the session. The enrolment of the daemon is not affected. */
export async function logout({ home: given }: HubOptions): Promise<void> {
  const home = homeFolder(given)
  const session = readSession(home)
  if (!session) return void process.stdout.write('not signed in\n')
  try {
    await new HubClient(session.hub, session.token).call(DeleteSession, {})
  } catch (error) {
    // If the hub no longer knows the session, it has already ended.
    if (!(error instanceof CadreError) || error.code !== 'unauthorized') throw error
  }
  forgetSession(home)
  process.stdout.write(`signed out of ${session.hub}\n`)
}

/** Prints a new realm token, with which a daemon enrols (CADRE_REALM_TOKEN). The hub never shows it again. */
export async function realmToken(realm: string | undefined, options: Options & { name?: string }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const minted = await client.call(GenerateToken, {
    type: 'realm',
    name: options.name ?? `daemon on ${hostname()}`,
    realm_ids: [await realmIdOf(client, realm)],
  })
  process.stdout.write(`${options.json ? JSON.stringify(minted) : minted.token}\n`)
  if (process.stdout.isTTY) {
    process.stderr.write(`to enrol a daemon with it: ${commandLine('enrol', '--hub', client.url)}\n`)
  }
}
