// `enrol`: stores the hub and a realm token that it accepts, so that `serve` needs no environment.

import { CadreError } from '../../error.ts'
import { Whoami } from '../../wire/hub-calls.ts'
import { homeFolder } from '../home.ts'
import { HubClient } from '../link/link.ts'
import { refuseOtherToken } from '../link-hub.ts'
import { type HubOptions, hubAddress } from './hub-client.ts'
import { whyRestart } from './hub-standing.ts'
import { storeSetting } from './settings.ts'
import { serving } from './standing.ts'
import { typedSecret } from './typed-secret.ts'

/** Reads the token without showing it, or from stdin. */
export async function enrol(options: HubOptions): Promise<void> {
  const home = homeFolder(options.home)
  const url = await hubAddress(home, options)
  const token = (await typedSecret('realm token: ')).trim()
  refuseOtherToken(token, 'the token')
  const { type } = await new HubClient(url, token).call(Whoami, {})
  if (type !== 'realm') throw new CadreError('invalid_request', `${url} does not know this as a realm token`)
  await storeSetting(home, 'hub.url', url)
  await storeSetting(home, 'hub.realm_token', token)
  const restart = await restartOf(home)
  process.stdout.write(`enrolled at ${url}${restart ? `; ${restart}` : ': the next `serve` takes jobs from there'}\n`)
}

/** What a daemon that runs needs before it takes the new enrolment; null when nothing or when none runs. */
async function restartOf(home: string): Promise<string | null> {
  const daemon = await serving(home)
  return daemon?.command === 'serve' ? whyRestart(daemon, `process ${daemon.pid}`) : null
}
