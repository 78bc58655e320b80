// Commands that talk to the hub as a person: login, logout, realm-token, publish, dispatch. The credential is CADRE_API_KEY, else the
// setting hub.api_key, else the session that `login` left in `<home>/session` (mode 0600).

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { commandLine } from '../../called-as.ts'
import { writeDurable } from '../../durable-file.ts'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { createLog } from '../../log.ts'
import { openSettings } from '../../settings/settings.ts'
import {
  AddTeam,
  CreateSession,
  DeleteSession,
  DispatchRun,
  DownloadTeam,
  GenerateToken,
  ListRealms,
  PublishTeam,
} from '../../wire/hub-calls.ts'
import { refuseSessionForm } from '../api-key.ts'
import { homeFolder, makeHome } from '../home.ts'
import { HubClient } from '../link/link.ts'
import { type InputOptions, readInputs } from './inputs.ts'
import { inputsOf, readPackage, signed } from './package.ts'

export interface HubOptions {
  home?: string
  hub?: string
}

interface Session {
  hub: string
  token: string
}

const sessionFile = (home: string) => join(home, 'session')

/** Signs in. The password is typed without being shown, or read from stdin. */
export async function login(username: string, { home: given, hub }: HubOptions): Promise<void> {
  const home = homeFolder(given)
  const url = hub ?? process.env.CADRE_HUB_URL
  if (!url) throw new CadreError('invalid_request', 'the hub is not known: give --hub, or set CADRE_HUB_URL')
  const password = await typedSecret(`password of ${username}: `)
  const { token } = await new HubClient(url, null).call(CreateSession, { username, password })
  makeHome(home)
  const session: Session = { hub: url, token }
  await writeDurable(sessionFile(home), JSON.stringify(session))
  process.stdout.write(`signed in at ${url} as ${username}\n`)
}

/** Reads what is typed up to Enter, without showing it. Without a terminal, reads stdin. */
export async function typedSecret(prompt: string): Promise<string> {
  if (!process.stdin.isTTY) return (await Bun.stdin.text()).replace(/\r?\n$/, '')
  process.stderr.write(prompt)
  process.stdin.setRawMode(true)
  let typed = ''
  try {
    for await (const chunk of process.stdin) {
      for (const key of String(chunk)) {
        if (key === '\r' || key === '\n' || key === '\x04') return typed
        if (key === '\x03') throw new CadreError('invalid_request', 'nothing was given')
        typed = key === '\x7f' || key === '\b' ? typed.slice(0, -1) : typed + key
      }
    }
    return typed
  } finally {
    process.stdin.setRawMode(false)
    process.stdin.unref()
    process.stderr.write('\n')
  }
}

/** Prints a new realm token, with which a daemon enrols (CADRE_REALM_TOKEN). The hub never shows it again. */
export async function realmToken(
  realm: string,
  options: HubOptions & { name?: string; json?: boolean },
): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const minted = await client.call(GenerateToken, {
    type: 'realm',
    name: options.name ?? `daemon on ${hostname()}`,
    realm_ids: [await realmOf(client, realm)],
  })
  process.stdout.write(`${options.json ? JSON.stringify(minted) : minted.token}\n`)
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
  rmSync(sessionFile(home))
  process.stdout.write(`signed out of ${session.hub}\n`)
}

export interface PublishOptions extends HubOptions {
  scope?: string
  /** False publishes unsigned, although there is a key. A hub that is older than signatures refuses signed packages. */
  sign?: boolean
  /** Also put the team on this realm's list, so that it can be dispatched there. */
  realm?: string
  json?: boolean
}

export async function publish(path: string, options: PublishOptions): Promise<void> {
  const home = homeFolder(options.home)
  const client = await hubOf(home, options)
  const { scope, realm, sign, json } = options
  const files = await readPackage(path, scope)
  const signature = sign === false ? null : signed(home, files)
  const realm_id = realm === undefined ? null : await realmOf(client, realm)
  const published = await client.call(
    PublishTeam,
    { files, ...(scope !== undefined && { scope }), ...(signature && { signature }) },
    { timeout: 120_000 },
  )
  if (realm_id) await client.call(AddTeam, { realm_id, team: published.name })
  if (json) return void process.stdout.write(`${JSON.stringify(published)}\n`)
  process.stdout.write(`${published.name}@${published.version}  ${published.sha256}\n`)
  if (signature) process.stderr.write(`signed with ${signature.key}\n`)
  const next =
    realm === undefined
      ? `to run it, put it on a realm's list: ${commandLine('publish', path)} --realm REALM`
      : `to run it: ${commandLine('dispatch', published.name, '--realm', realm)}`
  process.stderr.write(`${next}\n`)
}

export interface DispatchOptions extends HubOptions, InputOptions {
  realm: string
  name?: string
  workspace?: string
  json?: boolean
}

export async function dispatch(team: string, options: DispatchOptions): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm_id = await realmOf(client, options.realm)
  const { name, workspace } = options
  const job = await client.call(DispatchRun, {
    realm_id,
    team,
    inputs: await givenInputs(client, team, options),
    ...(name !== undefined && { run_name: name }),
    ...(workspace !== undefined && { workspace }),
  })
  if (options.json) return void process.stdout.write(`${JSON.stringify(job)}\n`)
  process.stdout.write(`${job.run_id}  ${job.state}${job.waiting_for ? `, waiting for ${job.waiting_for}` : ''}\n`)
}

/** The inputs of `-i`. They are text until the team's declaration says what type they have. */
async function givenInputs(client: HubClient, team: string, options: InputOptions): Promise<JsonObject> {
  if (!options.input) return readInputs([], options)
  const { files } = await client.call(DownloadTeam, { team })
  return readInputs(inputsOf(files), options)
}

/** A client for the hub in question, with the credential for it. */
export async function hubOf(home: string, options: HubOptions): Promise<HubClient> {
  const session = readSession(home)
  const url = await hubAddress(home, options)
  const key = process.env.CADRE_API_KEY || (await stored(home, 'hub.api_key'))
  refuseSessionForm(key)
  // A session is sent only to the hub that issued it.
  const token = key ?? (session?.hub === url ? session.token : null)
  if (token) return new HubClient(url, token)
  throw new CadreError('unauthorized', `no credential for ${url}: set CADRE_API_KEY, or sign in with \`login\``)
}

/**
 * The address that was given, else that of the session, else that where the daemon is enrolled. Throws
 * `invalid_request`.
 */
export async function hubAddress(home: string, { hub }: HubOptions): Promise<string> {
  const url = hub ?? (process.env.CADRE_HUB_URL || (readSession(home)?.hub ?? (await stored(home, 'hub.url'))))
  if (url) return url
  throw new CadreError(
    'invalid_request',
    'the hub is not known: give --hub, set CADRE_HUB_URL, or sign in with `login`',
  )
}

async function stored(home: string, key: string): Promise<string | null> {
  const settings = await openSettings(home, { log: createLog({ level: 'warn' }) })
  await settings.prepare(['hub'])
  const value = settings.value(key)
  return typeof value === 'string' ? value : null
}

function readSession(home: string): Session | null {
  const file = sessionFile(home)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null
}

/** A realm by its id, its slug or its name. */
async function realmOf(client: HubClient, wanted: string): Promise<string> {
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(wanted)) return wanted
  const limit = 100
  for (let offset = 0; ; offset += limit) {
    const { realms, total } = await client.call(ListRealms, {
      limit,
      offset,
    })
    const found = realms.find(({ slug, name }) => slug === wanted || name === wanted)
    if (found) return found.id
    if (offset + limit >= total) throw new CadreError('not_found', `there is no realm ${wanted} at ${client.url}`)
  }
}
