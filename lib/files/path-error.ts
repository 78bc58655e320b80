// Says in words why a path that somebody gave cannot be used.

import { CadreError } from '../error.ts'

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'there is no permission for it',
  EEXIST: 'it exists already',
  EISDIR: 'it is a folder',
  ELOOP: 'its links lead in a circle',
  ENAMETOOLONG: 'it is too long',
  ENOENT: 'it, or the folder that it should be in, does not exist',
  ENOTDIR: 'a part of the path is not a folder',
  EPERM: 'there is no permission for it',
  EROFS: 'its disk cannot be written to',
}

/** The error of a call of `node:fs` as one about its path; null for any other error. */
export function pathError(thrown: unknown): CadreError | null {
  const { code = '', path } = thrown instanceof Error ? (thrown as NodeJS.ErrnoException) : {}
  const why = REASONS[code]
  if (why === undefined || typeof path !== 'string') return null
  return new CadreError('invalid_request', `${path} cannot be used: ${why}`, { cause: thrown })
}
