// Bun's S3 client with what it is given, and nothing that it would take from the daemon's environment.

import { AgentError } from '../agent/define.ts'

export interface StoreAccess {
  accessKeyId: string
  secretAccessKey: string
  /** Of temporary keys. */
  sessionToken?: string | undefined
  endpoint: string
  region: string
  bucket: string
}

/**
 * Throws an AgentError `refused` where the environment has a session token and `access` has none: Bun (1.4) adds it to
 * every request, to whatever store, and an empty one does not keep it out.
 */
export function storeClient(access: StoreAccess, env: Record<string, string | undefined> = process.env): Bun.S3Client {
  const { sessionToken, ...rest } = access
  const name = ['S3_SESSION_TOKEN', 'AWS_SESSION_TOKEN'].find(name => env[name])
  if (name && !sessionToken) {
    throw new AgentError(`the daemon's environment has ${name}, which Bun would send along with other keys`, {
      code: 'refused',
      hint: `start the daemon without ${name}; if it belongs to these keys, set session_token to \${env:${name}}`,
      sent: 'no',
    })
  }
  return new Bun.S3Client({ ...rest, ...(sessionToken && { sessionToken }) })
}
