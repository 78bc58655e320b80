// Deletes objects, each with a request of its own: every store knows it, and what a store refuses has a name.

import { type ObjectAddress, type StoreContext, storeRequest } from './request.ts'

/** Number of objects that are deleted concurrently. */
const ABREAST = 8

/** Deletes the objects. What is not there is done; a bucket that is not there is an error. It ends at the first refusal. */
export async function remove(context: StoreContext, objects: readonly ObjectAddress[]): Promise<void> {
  for (let at = 0; at < objects.length; at += ABREAST) {
    const some = objects.slice(at, at + ABREAST)
    const request = { method: 'DELETE', permission: 's3:DeleteObject', done: /^NoSuchKey$/ }
    const ended = await Promise.allSettled(some.map(object => storeRequest(context, object, request)))
    const refused = ended.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
    if (refused.length === 0) continue
    context.log(`${at + ended.length - refused.length} of ${objects.length} objects are deleted`)
    throw refused[0]!.reason
  }
}
