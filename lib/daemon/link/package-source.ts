// The hub as the server from which packages are downloaded.

import type { Settings } from '../../settings/settings.ts'
import { enrolmentOf } from '../access/hub-credentials.ts'
import type { PackageSource } from '../packages/packages.ts'
import { HubClient } from './hub-client.ts'

/** Downloads with `token`. The call is loaded with the first download, because most runs use no package of a hub. */
export function packagesOfHub(client: HubClient, token: string): PackageSource {
  return {
    async download(team) {
      const { DownloadTeam } = await import('../../wire/calls/packages.ts')
      return client.call(DownloadTeam, { team }, { token })
    },
  }
}

/**
 * The hub at which a home is enrolled, with the credential that its daemon would use. Null when the home is not
 * enrolled. Throws `invalid_request` for a session token as API key.
 */
export async function packagesOfEnrolment(
  settings: Settings,
  env: Record<string, string | undefined>,
): Promise<PackageSource | null> {
  await settings.prepare(['hub'])
  const enrolment = enrolmentOf(settings, env)
  if (!enrolment) return null
  const { url, realmToken, apiKey } = enrolment
  return packagesOfHub(new HubClient(url, realmToken), apiKey ?? realmToken)
}
