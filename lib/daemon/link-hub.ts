// Whether the daemon has a hub, and with which token: from the environment, or from the settings.

import { CadreError } from '../error.ts'
import type { Json } from '../json.ts'
import { refuseSessionForm } from './api-key.ts'
import type { Daemon } from './daemon.ts'
import type { Enrolment } from './enrol.ts'
import type { Link } from './link/link.ts'

type Environment = Record<string, string | undefined>

/**
 * Links the daemon to its hub. Returns null without an address and a realm token, which come from the environment, or
 * from the settings if an earlier start stored them. Throws `invalid_request` when a credential is of the wrong kind,
 * and the hub's error when the hub refuses the token.
 */
export async function linkHub(daemon: Daemon, env: Environment): Promise<Link | null> {
  const { settings } = daemon
  await settings.prepare(['hub'])
  const apiKey = env.CADRE_API_KEY || textOf(settings.value('hub.api_key'))
  refuseSessionForm(apiKey ?? undefined)
  const url = env.CADRE_HUB_URL || textOf(settings.value('hub.url'))
  if (!url) {
    if (env.CADRE_REALM_TOKEN) daemon.log.warn('CADRE_REALM_TOKEN is set without CADRE_HUB_URL: the daemon works alone')
    return null
  }
  // Most daemons have no hub, and start faster without the code for it.
  const { enrol, refuseSession } = await import('./enrol.ts')
  if (apiKey) await refuseSession(url, apiKey, daemon)
  daemon.checkSetting = async (key, value) => {
    if (key === 'hub.api_key' && typeof value === 'string') await refuseSession(url, value, daemon)
  }
  const enrolment = enrolmentAt(url, daemon, env)
  return enrolment && enrol(daemon, enrolment, apiKey, env)
}

/** Where the home is enrolled, when it is, without any call. The settings `hub` must be prepared. */
export function enrolmentOf(
  { settings }: Pick<Daemon, 'settings'>,
  env: Environment,
): Pick<Enrolment, 'url' | 'realmToken'> | null {
  const known = textOf(settings.value('hub.url'))
  const url = env.CADRE_HUB_URL || known
  if (!url) return null
  const stored = known && sameHub(known, url) ? textOf(settings.value('hub.realm_token')) : null
  const realmToken = env.CADRE_REALM_TOKEN || stored
  return realmToken ? { url, realmToken } : null
}

/** Null when there is no realm token for this hub. A stored token is used only for the hub that it was stored with. */
function enrolmentAt(url: string, { settings, log }: Daemon, env: Environment): Enrolment | null {
  if (env.CADRE_REALM_TOKEN) {
    refuseOtherToken(env.CADRE_REALM_TOKEN, 'CADRE_REALM_TOKEN')
    return { url, realmToken: env.CADRE_REALM_TOKEN, remembered: false }
  }
  const [known, realmToken] = [textOf(settings.value('hub.url')), textOf(settings.value('hub.realm_token'))]
  if (realmToken && known && sameHub(known, url)) return { url, realmToken, remembered: true }
  const why = realmToken ? ` (hub.realm_token is for ${known ?? 'another hub'})` : ''
  log.warn(`CADRE_HUB_URL is set without CADRE_REALM_TOKEN: the daemon takes no jobs and syncs no runs${why}`)
  return null
}

const sameHub = (a: string, b: string): boolean => a.replace(/\/+$/, '') === b.replace(/\/+$/, '')

/** Throws `invalid_request` for anything but a realm token. `name` says where the value comes from. */
export function refuseOtherToken(token: string, name: string): void {
  if (token.startsWith('cadre_dt_')) return
  throw new CadreError('invalid_request', `${name} must be a realm token (cadre_dt_…): mint one with type realm`)
}

const textOf = (value: Json | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null)
