// The hub that a command talks to as a person, and the credential for it: CADRE_API_KEY, else the setting hub.api_key,
// else the session that `login` left in `<home>/session` (mode 0600). Each is sent only to the hub that it is for.

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Static, TSchema } from 'typebox'
import { CadreError } from '../../../error.ts'
import { writeDurable } from '../../../files/durable-file.ts'
import { COMMAND_LINE } from '../../../http/via.ts'
import { createLog } from '../../../log/log.ts'
import { commandLine } from '../../../program/called-as.ts'
import type { Call } from '../../../wire/call.ts'
import { LACKS_GRANT } from '../../../wire/reasons.ts'
import { HubCredentials, sameHub } from '../../access/hub-credentials.ts'
import { makeHome } from '../../home/home.ts'
import { type CallOptions, HubClient } from '../../link/hub-client.ts'

export interface HubOptions {
  home?: string
  hub?: string
}

export interface Session {
  hub: string
  token: string
}

interface Source {
  /** `your session`. */
  name: string
  /** What to do before signing in has an effect: `unset it and`. */
  first: string
}

const ENVIRONMENT: Source = { name: 'CADRE_API_KEY', first: 'unset it and ' }
const SETTING: Source = { name: 'the setting hub.api_key', first: 'remove it (`settings set hub.api_key`) and ' }
const SESSION: Source = { name: 'your session', first: '' }

/** A hub, called with the credential of a person. Errors about the credential say which one it is and what to do. */
class PersonalClient extends HubClient {
  readonly #source: Source

  constructor(url: string, token: string, source: Source) {
    super(url, token)
    this.#source = source
  }

  override async call<Body extends TSchema, Data extends TSchema>(
    call: Call<Body, Data>,
    body: Static<Body>,
    options?: CallOptions,
  ): Promise<Static<Data>> {
    try {
      return await super.call(call, body, { ...options, headers: { 'user-agent': COMMAND_LINE, ...options?.headers } })
    } catch (error) {
      throw error instanceof CadreError ? this.#explained(error) : error
    }
  }

  #explained(error: CadreError): CadreError {
    const { code, message, reason, details } = error
    const { name, first } = this.#source
    const more =
      code === 'unauthorized'
        ? `the credential is ${name}: ${first}${signIn(this.url)}`
        : reason === LACKS_GRANT
          ? `the credential is ${name}: mint a token that has it (\`tokens create\`), or ${first}${signIn(this.url)}`
          : null
    if (more === null) return error
    return new CadreError(code, `${message}; ${more}`, { ...(reason && { reason }), ...(details && { details }) })
  }
}

const signIn = (url: string) => `sign in with \`${commandLine('login', 'NAME', '--hub', url)}\``

/**
 * A client for the hub in question, with the credential for it. Throws `unauthorized` when there is none, and says which
 * credentials there are for another hub.
 */
export async function hubOf(home: string, options: HubOptions): Promise<HubClient> {
  const session = readSession(home)
  const url = await hubAddress(home, options)
  const credentials = await hubCredentials(home)
  const key = credentials.for(url, 'api_key')
  if (key) return new PersonalClient(url, key.token, key.stored ? SETTING : ENVIRONMENT)
  if (session && sameHub(session.hub, url)) return new PersonalClient(url, session.token, SESSION)
  const other = credentials.unused(url, 'api_key')
  const or = other === null ? ', or set CADRE_API_KEY' : `; ${other}`
  throw new CadreError('unauthorized', `you are not signed in at ${url}: ${signIn(url)}${or}`)
}

/**
 * The address that was given, else that of the session, else that where the daemon is enrolled. Throws
 * `invalid_request`.
 */
export async function hubAddress(home: string, options: HubOptions): Promise<string> {
  const url = await knownHub(home, options)
  if (url !== null) return url
  throw new CadreError(
    'invalid_request',
    'the hub is not known: give --hub, set CADRE_HUB_URL, or sign in with `login`',
  )
}

/** Null when no hub is known. */
export async function knownHub(home: string, { hub }: HubOptions): Promise<string | null> {
  return hub ?? (process.env.CADRE_HUB_URL || (readSession(home)?.hub ?? (await hubCredentials(home)).home))
}

/** What this home and the environment hold for hubs. What reads settings is loaded only where there are some. */
export async function hubCredentials(home: string): Promise<HubCredentials> {
  if (!existsSync(join(home, 'settings.yml'))) return new HubCredentials({ value: () => undefined }, process.env)
  const { openSettings } = await import('../../../settings/settings.ts')
  const settings = await openSettings(home, { log: createLog({ level: 'warn' }) })
  await settings.prepare(['hub'])
  return new HubCredentials(settings, process.env)
}

const sessionFile = (home: string) => join(home, 'session')

export function readSession(home: string): Session | null {
  const file = sessionFile(home)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null
}

export async function keepSession(home: string, session: Session): Promise<void> {
  makeHome(home)
  await writeDurable(sessionFile(home), JSON.stringify(session))
}

export function forgetSession(home: string): void {
  rmSync(sessionFile(home))
}
