// The identity of a file or folder, independent of its name: a copy has another identity, and a renamed file keeps its
// own. Device numbers are not part of it, because they may change when the machine starts again.

import { type BigIntStats, statSync } from 'node:fs'

export interface FileIdentity {
  inode: string
  /** When the file was made, in nanoseconds; null where the file system does not know it. */
  birth: string | null
}

/** Throws the system's error when there is no such file. */
export function identityOf(path: string): FileIdentity {
  return identityFrom(statSync(path, { bigint: true }))
}

export function identityFrom({ ino, birthtimeNs }: BigIntStats): FileIdentity {
  return { inode: String(ino), birth: birthtimeNs > 0n ? String(birthtimeNs) : null }
}

export function isSameFile(a: FileIdentity, b: FileIdentity): boolean {
  return a.inode === b.inode && (a.birth === b.birth || a.birth === null || b.birth === null)
}

/** The identity as a part of a name. */
export const identityText = ({ inode, birth }: FileIdentity): string => `${inode}-${birth ?? 0}`
