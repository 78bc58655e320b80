// Calls of the hub's API. The session is in a cookie that no script can read, and the hub takes it below `/web` only.

import { signal } from '@preact/signals'
import { GetHubFile } from '../../../wire/calls/hub-artifacts.ts'
import { failureOf, type Read, Refusal, type Send, token } from '../../kit/api.ts'
import { heard, missed } from '../../kit/connection.ts'

interface User {
  id: number
  username: string
}

/** Who is signed in: null for nobody, undefined while that is not known. */
export const me = signal<User | null | undefined>(undefined)

function setUser(user: User | null): void {
  token.value = user?.username ?? null
  me.value = user
}

/** All tabs have the same session, so one that begins or ends it tells the others. */
const tabs = new BroadcastChannel('cadre-session')
tabs.onmessage = ({ data }: MessageEvent<User | null>) => setUser(data)

function setUserOfTabs(user: User | null): void {
  setUser(user)
  tabs.postMessage(user)
}

/** The reply to a request. A session that has ended leads to the page for signing in. */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const sentAt = Date.now()
  let reply: Response
  // A file in a bucket is at another host, from which a page cannot read. The browser can load it down.
  const file = path.startsWith(GetHubFile.path)
  try {
    reply = await fetch(`/web${path}`, file ? { ...init, redirect: 'manual' } : init)
  } catch (error) {
    if (init.signal?.aborted) throw error
    missed()
    throw new Refusal({
      code: 'unreachable',
      message: 'The hub does not answer. Check the connection; the page tries again by itself.',
    })
  }
  heard(reply, sentAt)
  if (file && reply.type === 'opaqueredirect') {
    location.assign(`/web${path}`)
    throw new Refusal({
      code: 'elsewhere',
      message: 'The file is in a bucket and cannot be shown here: it is downloaded.',
    })
  }
  if (reply.status === 401 && path.startsWith('/v1/')) setUser(null)
  return reply
}

async function data(path: string, method: string, body?: unknown) {
  const reply = await ask(path, {
    method,
    ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  if (!reply.ok) throw await failureOf(reply)
  return (await reply.json()).data
}

/** The data of a call that changes nothing. Throws a `Refusal`. */
export const hub: Read = (call, body) => data(call.path, 'POST', body)

/** The data of any call, for actions. */
export const sendToHub: Send = (call, body) => data(call.path, 'POST', body)

/** Finds out who is signed in. */
export async function findSession(): Promise<void> {
  setUser((await data('/session', 'GET')).user)
}

export async function signIn(username: string, password: string): Promise<void> {
  setUserOfTabs((await data('/session', 'POST', { username, password })).user)
}

export async function signOut(): Promise<void> {
  await data('/session', 'DELETE')
  setUserOfTabs(null)
}
