// The credentials that a home has for a hub: user tokens (`hub.api_key`, CADRE_API_KEY) and realm tokens
// (`hub.realm_token`, CADRE_REALM_TOKEN). Each is for one hub, and can be asked for only with the address that it is
// sent to, so that no other hub ever receives it.

import { CadreError } from '../../error.ts'
import type { Json } from '../../json.ts'
import { commandLine } from '../../program/called-as.ts'
import { refuseSessionForm } from './api-key.ts'

type Environment = Record<string, string | undefined>

interface Readable {
  /** The value of a setting, with references resolved. The settings `hub` must be prepared. */
  value(key: string): Json | undefined
}

export interface HubCredential {
  token: string
  /** `CADRE_API_KEY` or `the setting hub.api_key`. */
  name: string
  /** Whether it comes from the settings. */
  stored: boolean
}

/** The hub of a home, and the token with which its daemon is enrolled there. */
export interface Enrolment {
  url: string
  realmToken: string
  /** Whether the token comes from the settings. */
  remembered: boolean
  /** The user token for this hub, or null. */
  apiKey: string | null
}

type Kind = 'api_key' | 'realm_token'

const VARIABLES = { api_key: 'CADRE_API_KEY', realm_token: 'CADRE_REALM_TOKEN' } as const

export class HubCredentials {
  readonly #settings: Readable
  readonly #env: Environment

  /** Throws `invalid_request` when a user token is one of a session. */
  constructor(settings: Readable, env: Environment) {
    this.#settings = settings
    this.#env = env
    refuseSessionForm(env.CADRE_API_KEY)
    refuseSessionForm(settings.value('hub.api_key'))
  }

  /** The address that the settings are about, or null. */
  get home(): string | null {
    return textOf(this.#settings.value('hub.url'))
  }

  /** Where a daemon of this home belongs, or null. */
  get hub(): string | null {
    return this.#env.CADRE_HUB_URL || this.home
  }

  /**
   * The credential for the hub at `url`, or null. One in the settings is for `hub.url`. One in the environment is for
   * CADRE_HUB_URL, or else for `hub.url`; where neither is known, it is for the hub that the same command names.
   */
  for(url: string, kind: Kind): HubCredential | null {
    const given = this.#env[VARIABLES[kind]]
    if (given) return this.hub === null || sameHub(this.hub, url) ? credential(given, kind, false) : null
    const stored = this.#stored(kind)
    return stored !== null && this.home !== null && sameHub(this.home, url) ? credential(stored, kind, true) : null
  }

  /** Says which credential there is that is not for the hub at `url`, and how to use it there; null when there is none. */
  unused(url: string, kind: Kind): string | null {
    if (this.for(url, kind)) return null
    if (this.#env[VARIABLES[kind]]) {
      const by = this.#env.CADRE_HUB_URL ? 'CADRE_HUB_URL' : 'the setting hub.url'
      return `${VARIABLES[kind]} is for ${this.hub} (${by}); set CADRE_HUB_URL to the hub that it is for`
    }
    if (this.#stored(kind) === null) return null
    return this.home === null
      ? `the setting hub.${kind} is used only with the setting hub.url, which is not set`
      : `the setting hub.${kind} is for ${this.home} only`
  }

  /** Throws `invalid_request` when `hub.url` cannot become `url`, because there is a user token for another hub. */
  refuseOtherHub(url: string): void {
    if (this.#stored('api_key') === null || (this.home !== null && sameHub(this.home, url))) return
    const way = `remove it first with \`${commandLine('settings', 'set', 'hub.api_key')}\``
    if (this.home !== null) {
      throw new CadreError('invalid_request', `hub.api_key is for ${this.home} and must not go to ${url}: ${way}`)
    }
    const or = `or, if it is for this hub, run \`${commandLine('settings', 'set', 'hub.url', url)}\``
    throw new CadreError('invalid_request', `hub.api_key is stored without the hub that it is for: ${way}, ${or}`)
  }

  #stored(kind: Kind): string | null {
    return textOf(this.#settings.value(`hub.${kind}`))
  }
}

/**
 * Where the home is enrolled, when it is, without any call. The settings `hub` must be prepared. Throws
 * `invalid_request` when CADRE_REALM_TOKEN is no realm token.
 */
export function enrolmentOf(settings: Readable, env: Environment): Enrolment | null {
  const credentials = new HubCredentials(settings, env)
  const url = credentials.hub
  const realm = url ? credentials.for(url, 'realm_token') : null
  if (!url || !realm) return null
  if (!realm.stored) refuseOtherToken(realm.token, realm.name)
  const apiKey = credentials.for(url, 'api_key')?.token ?? null
  return { url, realmToken: realm.token, remembered: realm.stored, apiKey }
}

/** Throws `invalid_request` for anything but a realm token. `name` says where the value comes from. */
export function refuseOtherToken(token: string, name: string): void {
  if (token.startsWith('cadre_dt_')) return
  throw new CadreError('invalid_request', `${name} must be a realm token (cadre_dt_…): mint one with type realm`)
}

/**
 * Stores where the home is enrolled. A token for another hub is removed first, so that at no moment it stands beside
 * this address. Throws `invalid_request` when the settings hold a user token for another hub.
 */
export async function storeEnrolment(
  credentials: HubCredentials,
  store: (key: string, value: string | null) => Promise<void>,
  url: string,
  realmToken: string,
): Promise<void> {
  credentials.refuseOtherHub(url)
  if (credentials.home !== null && !sameHub(credentials.home, url)) await store('hub.realm_token', null)
  await store('hub.url', url)
  await store('hub.realm_token', realmToken)
}

const credential = (token: string, kind: Kind, stored: boolean): HubCredential => ({
  ...{ token: token.trim(), stored },
  name: stored ? `the setting hub.${kind}` : VARIABLES[kind],
})

/** Whether two addresses are those of one hub. Case of the host, a default port and a slash at the end do not matter. */
export function sameHub(a: string, b: string): boolean {
  const [one, other] = [plain(a), plain(b)]
  return one !== null && one === other
}

function plain(url: string): string | null {
  const parsed = URL.parse(url)
  return parsed && `${parsed.origin}${parsed.pathname.replace(/\/+$/, '')}`
}

const textOf = (value: Json | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null)
