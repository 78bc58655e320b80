// Whether the daemon has a hub, and with which token: from the environment, or from the settings.

import { enrolmentOf, HubCredentials } from '../access/hub-credentials.ts'
import type { Daemon } from '../runs/daemon.ts'
import type { Link } from './link.ts'

type Environment = Record<string, string | undefined>

/**
 * Links the daemon to its hub. Returns null without an address and a realm token, which come from the environment, or
 * from the settings if an earlier start stored them. Throws `invalid_request` when a credential is of the wrong kind,
 * and the hub's error when the hub refuses the token.
 */
export async function linkHub(daemon: Daemon, env: Environment): Promise<Link | null> {
  const { settings, log } = daemon
  await settings.prepare(['hub'])
  const credentials = new HubCredentials(settings, env)
  const url = credentials.hub
  if (!url) {
    if (env.CADRE_REALM_TOKEN) log.warn('CADRE_REALM_TOKEN is set without CADRE_HUB_URL: the daemon works alone')
    return null
  }
  // Most daemons have no hub, and start faster without the code for it.
  const { enrol, refuseSession } = await import('./enrol-daemon.ts')
  const apiKey = credentials.for(url, 'api_key')
  if (apiKey) await refuseSession(url, apiKey.token, daemon)
  const unused = credentials.unused(url, 'api_key')
  if (unused) log.warn('the api key is not used', { hub: url, why: unused })
  daemon.checkSetting = async (key, value) => {
    if (key === 'hub.api_key' && typeof value === 'string') await refuseSession(url, value, daemon)
  }
  const enrolment = enrolmentOf(settings, env)
  if (enrolment) return enrol(daemon, enrolment, env)
  const why = credentials.unused(url, 'realm_token')
  log.warn('the hub is known without a realm token: the daemon takes no jobs and syncs no runs', {
    hub: url,
    ...(why && { why }),
  })
  return null
}
