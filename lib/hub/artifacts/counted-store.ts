// Counts how calls of the store of files end. A bucket that does not answer, or a folder on a full disk, is then told by
// its own name, and not only as requests of the hub that fail.

import { CadreError } from '../../error.ts'
import type { Counter } from '../../http/metrics.ts'
import type { ArtifactStore } from '../core/artifact-store.ts'

export function countedStore(store: ArtifactStore, calls: Counter): ArtifactStore {
  const counted = async <T>(call: Promise<T>): Promise<T> => {
    try {
      const answer = await call
      calls.add(1, { result: 'answered' })
      return answer
    } catch (error) {
      // A content that is not the announced one is the fault of its sender.
      const isRefused = error instanceof CadreError && error.code === 'invalid_request'
      calls.add(1, { result: isRefused ? 'answered' : 'failed' })
      throw error
    }
  }
  const { most, receive } = store
  return {
    most,
    has: file => counted(store.has(file)),
    upload: file => store.upload(file),
    receive: receive && ((file, content) => counted(receive(file, content))),
    download: (file, name) => counted(store.download(file, name)),
    remove: file => counted(store.remove(file)),
    tidy: now => counted(store.tidy(now)),
  }
}
