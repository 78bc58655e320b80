// artifacts/*: the files of runs. Daemons send what their synced runs have recorded to the store of `CADRE_ARTIFACTS`
// (offer, put, keep), and people get it from there.

import { basename } from 'node:path'
import { eq } from 'drizzle-orm'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { GetHubFile, KeepFile, OfferFile, PutFile } from '../../wire/calls/hub-artifacts.ts'
import { answer } from '../access/answer.ts'
import { callingDaemon, checkProtocol } from '../access/daemons.ts'
import { hubKit } from '../access/kit.ts'
import { admitFile, confirmStored, reportedFile, storedOf, storeOf } from '../artifacts/kept-files.ts'
import type { Hub } from '../core/hub.ts'
import { type ReportedRun, readableRun } from '../reports/runs.ts'

export function artifacts(hub: Hub) {
  const { store } = hub

  return resource('artifacts', hubKit(hub), [
    answer(OfferFile, async ({ body, caller }) => {
      checkProtocol(body.protocol)
      const daemon = await callingDaemon(hub, caller, body)
      const file = await admitFile(hub, caller, daemon, body)
      // An earlier upload may have ended although nobody heard of it.
      if (await confirmStored(hub, caller, file)) return { stored: true, upload: null }
      return { stored: false, upload: await storeOf(hub).upload(file) }
    }),
    answer(PutFile, async ({ query, caller, request }) => {
      const daemon = await callingDaemon(hub, caller, query)
      const { receive } = storeOf(hub)
      if (receive === null) throw new CadreError('conflict', 'send the file to the URL that artifacts/offer returns')
      const bytes = Number(query.bytes)
      const announced = request.headers.get('content-length')
      if (announced !== null && Number(announced) !== bytes) {
        throw new CadreError('invalid_request', `the body must have ${bytes} bytes, not ${announced}`)
      }
      const file = await admitFile(hub, caller, daemon, { run_id: query.run_id, sha256: query.sha256, bytes })
      if (file.stored_at === null) await receive(file, request.body)
      return { sha256: file.sha256 }
    }),
    answer(KeepFile, async ({ body, caller }) => {
      checkProtocol(body.protocol)
      const daemon = await callingDaemon(hub, caller, body)
      if (await confirmStored(hub, caller, await admitFile(hub, caller, daemon, body))) return { stored: true as const }
      throw new CadreError('conflict', `the store does not have the whole file ${body.sha256}: send it again`)
    }),
    answer(GetHubFile, async ({ query, caller }) => {
      const { row: run } = await readableRun(hub, caller, query.run_id)
      const file = await reportedFile(hub, run.run_id, query.path)
      if (!file) throw new CadreError('not_found', `run ${run.run_id} has no file ${query.path}`)
      const stored = await storedOf(hub, run.root_run_id, [file])
      if (!stored.has(file.sha256)) throw await elsewhere(run, file.path)
      const { realm_id, root_run_id } = run
      return storeOf(hub).download({ realm_id, root_run_id, ...file }, basename(file.path))
    }),
  ])

  /** The error for a file that only its daemon has. */
  async function elsewhere({ run_id, daemon_id }: ReportedRun, path: string): Promise<CadreError> {
    const { daemons, db } = store
    const [daemon] = daemon_id ? await db.select().from(daemons).where(eq(daemons.id, daemon_id)) : []
    const where = daemon ? `daemon ${daemon.name} (${daemon.id})` : 'a daemon that is not known any more'
    const why = hub.artifacts
      ? 'has not been sent to the hub yet'
      : 'is not kept by this hub, because CADRE_ARTIFACTS is not set'
    return new CadreError('invalid_state', `${path} of run ${run_id} lies on ${where} and ${why}`)
  }
}
