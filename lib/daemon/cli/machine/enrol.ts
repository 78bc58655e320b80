// `enrol`: stores the hub and a realm token that it accepts, so that `serve` needs no environment.

import { CadreError } from '../../../error.ts'
import { line } from '../../../text/printable.ts'
import { print } from '../../../text/terminal.ts'
import { Whoami } from '../../../wire/calls/auth.ts'
import { refuseOtherToken, storeEnrolment } from '../../access/hub-credentials.ts'
import { homeFolder } from '../../home/home.ts'
import { HubClient } from '../../link/hub-client.ts'
import { whyRestart } from '../backend/hub-status.ts'
import { type HubOptions, hubAddress, hubCredentials } from '../kit/hub-client.ts'
import { typedSecret } from '../kit/typed-secret.ts'
import { serving } from './home-status.ts'
import { storeSetting } from './settings.ts'

/** Reads the token without showing it, or from stdin. */
export async function enrol(options: HubOptions): Promise<void> {
  const home = homeFolder(options.home)
  const url = await hubAddress(home, options)
  const credentials = await hubCredentials(home)
  credentials.refuseOtherHub(url)
  const token = (await typedSecret('realm token: ')).trim()
  refuseOtherToken(token, 'the token')
  const { type } = await new HubClient(url, token).call(Whoami, {})
  if (type !== 'realm') throw new CadreError('invalid_request', `${url} does not accept this realm token`)
  await storeEnrolment(credentials, (key, value) => storeSetting(home, key, value), url, token)
  const restart = await restartOf(home)
  print(line`enrolled at ${url}${restart ? `; ${restart}` : ': the next `serve` takes jobs from there'}`)
}

/** What a daemon that runs needs before it takes the new enrolment; null when nothing or when none runs. */
async function restartOf(home: string): Promise<string | null> {
  const daemon = await serving(home)
  return daemon?.command === 'serve' ? whyRestart(daemon, `process ${daemon.pid}`) : null
}
