// The id of a run, which is also the name of its folder in a home. An id that comes from outside becomes a `RunId` by
// being read here, and nothing else becomes part of a path below `<home>/runs`: a plain text is an error of types.

import { rm } from 'node:fs/promises'
import { CadreError } from '../error.ts'

declare const brand: unique symbol
/** A UUID in small letters. Rows of the run database have no other ids. */
export type RunId = string & { readonly [brand]: 'RunId' }

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export const isRunId = (text: unknown): text is RunId => typeof text === 'string' && UUID.test(text)

/** Reads the id of a run. Throws `not_found` for any other text, because no run has it. */
export function readRunId(text: string): RunId {
  if (isRunId(text)) return text
  throw new CadreError('not_found', `there is no run ${text}`)
}

/** The folder of a run. */
export const runFolder = (home: string, id: RunId): string => `${home}/runs/${id}`

/**
 * Removes the folder of a run. It removes one entry of `<home>/runs`: where that is a link, the link, and a link in it is
 * not followed.
 */
export async function removeRunFolder(home: string, id: RunId): Promise<void> {
  await rm(runFolder(home, id), { recursive: true, force: true })
}
