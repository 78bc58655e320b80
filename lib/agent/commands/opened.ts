// Opens the paths that a sandbox mounts, before it mounts them, so that no link that appears meanwhile takes their place.

import { closeSync, constants, openSync, readlinkSync } from 'node:fs'
import { AgentError } from '../core/agent-error.ts'

/** https://man7.org/linux/man-pages/man2/open.2.html: it names a place, and opens nothing there. */
const O_PATH = 0o10000000

/** Opens real paths on Linux. Throws when a link has come into one since it was judged. */
export function openAll(paths: readonly string[]): { descriptors: number[] } & Disposable {
  const descriptors: number[] = []
  const close = () => descriptors.forEach(closeSync)
  try {
    for (const path of paths) {
      const descriptor = openSync(path, O_PATH | constants.O_NOFOLLOW)
      descriptors.push(descriptor)
      if (readlinkSync(`/proc/self/fd/${descriptor}`) === path) continue
      throw new AgentError(`${path} was replaced by a link, which the sandbox does not follow`, {
        code: 'sandbox',
        hint: 'nothing else may change the folders above it while the command starts',
        sent: 'no',
      })
    }
  } catch (error) {
    close()
    throw error
  }
  return { descriptors, [Symbol.dispose]: close }
}
