// Where a command without a daemon gets packages from: the hub at which its home is enrolled, with the credential that
// the daemon would use.

import type { Settings } from '../../settings/settings.ts'
import { enrolmentOf } from '../access/hub-credentials.ts'
import type { PackageSource } from '../packages/packages.ts'

/** Null when the home is not enrolled. Throws `invalid_request` for a session token as api key. */
export async function hubSource(
  settings: Settings,
  env: Record<string, string | undefined>,
): Promise<PackageSource | null> {
  await settings.prepare(['hub'])
  const enrolment = enrolmentOf(settings, env)
  if (!enrolment) return null
  const { url, realmToken, apiKey } = enrolment
  const { HubClient } = await import('../link/link.ts')
  return { client: new HubClient(url, realmToken), token: apiKey ?? realmToken }
}
