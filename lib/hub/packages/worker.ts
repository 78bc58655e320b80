// The thread that checks packages (check.ts). It asks the main thread for the packages that a team names.

import type { AgentLookup, TeamPackage } from '../../team/team.ts'
import type { Found, FromWorker, ToWorker } from './check.ts'

declare const self: Worker

/** The maximum number of problems that are reported for one package. A hostile package can have millions. */
const MOST_PROBLEMS = 1_000

if (!Bun.isMainThread) {
  let agents: AgentLookup
  let asked = 0
  const asking = new Map<number, (found: Found | null) => void>()
  const post = (message: FromWorker) => self.postMessage(message)

  const resolve = async (reference: string): Promise<TeamPackage | null> => {
    const { promise, resolve } = Promise.withResolvers<Found | null>()
    asking.set(++asked, resolve)
    post({ find: reference, ask: asked })
    const found = await promise
    if (!found) return null
    const files = found.files.map(file => [file.path, Buffer.from(file.content_base64, 'base64')] as const)
    return { name: found.name, version: found.version, files: new Map(files) }
  }

  self.onmessage = async ({ data }: MessageEvent<ToWorker>) => {
    if ('found' in data) {
      asking.get(data.ask)?.(data.found)
      return void asking.delete(data.ask)
    }
    if ('setup' in data) {
      const { discover } = await import('../../agent/catalogue.ts')
      agents = await discover(data.setup)
      return post('ready')
    }
    const [{ checkPackage }, { CadreError, messageOf }] = await Promise.all([
      import('./reading.ts'),
      import('../../error.ts'),
    ])
    try {
      post({ checked: await checkPackage(data.check, { agents, resolve }) })
    } catch (error) {
      if (!(error instanceof CadreError)) return post({ failed: messageOf(error) })
      const { code, message, details } = error
      post({ refused: { code, message: message.slice(0, 10_000), details: details?.slice(0, MOST_PROBLEMS) } })
    }
  }
}
