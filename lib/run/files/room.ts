// What a disk has left: bytes, and files. A file system may have a fixed number of files (inodes), and when they are used
// up it says that there is no space although there is.

import { existsSync, statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '../../error.ts'
import { sizeText } from '../../size.ts'

const FLOOR_BYTES = 64 * 1_048_576
const FLOOR_FILES = 1_000
/** On a small disk the floors are this fraction of the disk. */
const FLOOR_PART = 0.05

/** What the disk of `home` has too little of, in words; null when it has enough. */
export async function lackOn(home: string): Promise<string | null> {
  const { bavail, blocks, bsize, ffree, files } = await statfs(home)
  const floor = Math.min(FLOOR_BYTES, blocks * bsize * FLOOR_PART)
  if (bavail * bsize < floor) {
    return `${sizeText(bavail * bsize)} are free on the disk of ${home}, ${sizeText(floor)} are needed`
  }
  // 0 where the file system has no fixed number.
  const fewest = Math.ceil(Math.min(FLOOR_FILES, files * FLOOR_PART))
  if (ffree >= fewest) return null
  return `${ffree} more files (inodes) can be made on the disk of ${home}, ${fewest} are needed`
}

/** Why a disk took no file below `folder`, in words. */
export function refusalOf(error: unknown, folder: string): string {
  // Without the call and the path of a temporary file, which differ with each try.
  const said = messageOf(error).replace(/, \w+(?: '.*)?$/s, '')
  try {
    let above = dirname(folder)
    while (!existsSync(above)) above = dirname(above)
    const { bavail, bsize, ffree, files } = statfsSync(above)
    if (files > 0 && ffree === 0) return `${said}: the disk of ${above} has no inodes left, so it takes no more files`
    return `${said}: ${sizeText(bavail * bsize)} are free on the disk of ${above}`
  } catch {
    return said
  }
}
