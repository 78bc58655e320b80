// An object store that is not ours and checks every signature itself: OpenStack Swift, where it is installed.
// It pages listings by ten.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sign } from 'aws4'
import { BUCKET } from './objectstore.ts'
import { hasPython, pythonProgram } from './python.ts'

export const hasSwift = hasPython('swift', 'python3-swift')

export const ACCESS = { access_key_id: 'test:tester', secret_access_key: 'canary-secret-of-swift', region: 'eu-west-3' }

/** With an empty bucket. */
export async function swift() {
  const { region, access_key_id: accessKeyId, secret_access_key: secretAccessKey } = ACCESS
  const directory = mkdtempSync(join(tmpdir(), 'cadre-swift-'))
  const { first: endpoint, stop } = await pythonProgram('object_server.py', [directory, region, secretAccessKey])
  /** What Bun's client has no call for. */
  const ask = (method: string, path: string) => {
    const { host } = new URL(endpoint)
    const request = { service: 's3', region, method, path, host, headers: {} }
    const { headers } = sign(request, { accessKeyId, secretAccessKey })
    return fetch(endpoint + path, { method, headers: headers as Record<string, string> })
  }
  const made = await ask('PUT', `/${BUCKET}`)
  if (!made.ok) throw new Error(`Swift made no bucket: ${made.status} ${await made.text()}`)
  return {
    endpoint,
    ask,
    client: new Bun.S3Client({ endpoint, accessKeyId, secretAccessKey, region, bucket: BUCKET }),
    async close() {
      await stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
