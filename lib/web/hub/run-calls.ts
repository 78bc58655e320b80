// The parts of the page that show a run make the calls of a daemon. A hub answers them with the same records, and some of
// them at other paths.

import type { Static, TSchema } from 'typebox'
import type { Call } from '../../wire/call.ts'
import { ListArtifacts } from '../../wire/calls/artifacts.ts'
import { CancelDispatched, ResumeDispatched } from '../../wire/calls/dispatch.ts'
import { ListHubArtifacts } from '../../wire/calls/hub-runs.ts'
import { CancelRun, GetHistory, GetTeam, ResumeRun } from '../../wire/calls/runs.ts'
import type { AskedReview } from '../../wire/records/review-records.ts'
import { Refusal, setSource } from '../kit/api.ts'
import { ask, me, sendToHub } from './kit/api.ts'
import { forbids, realms } from './kit/realm-choice.tsx'

/** The path of a hub for a call of a daemon. The bundle has only the addresses of calls, and so not who answers them. */
const PATHS = new Map<string, string>([
  [CancelRun.path, CancelDispatched.path],
  [ListArtifacts.path, ListHubArtifacts.path],
  [ResumeRun.path, ResumeDispatched.path],
])

/** Only the daemon that executes a run knows its earlier attempts and its writes. */
const NO_HISTORY: unknown = { attempts: [], written: [] }

async function send<Body extends TSchema, Data extends TSchema>(
  call: Call<Body, Data>,
  body: Static<Body>,
): Promise<Static<Data>> {
  const { path } = call
  if (path === GetHistory.path) return NO_HISTORY as Static<Data>
  if (path === GetTeam.path)
    throw new Refusal({ code: 'not_found', message: 'Only the page of the daemon shows this.' })
  return sendToHub({ ...call, path: PATHS.get(path) ?? path }, body)
}

/** Operators and admins of the realm answer reviews, and of these only whom the team names. */
function forbidsReview(review: AskedReview & { realm_id?: string }): string | null {
  const { realm_id, reviewers = [] } = review
  const asked = reviewers.length === 0 || reviewers.some(name => name === 'any' || name === me.value?.username)
  if (!asked) return `It asks ${reviewers.join(', ')}`
  return forbids(
    realms.value?.find(({ id }) => id === realm_id),
    'operator',
  )
}

/** From now on the shared parts ask the hub. */
export const askHub = (): void =>
  setSource({ ask, send, alive: '/session', where: ` --hub ${location.origin}`, forbidsReview })
