// Where a hub keeps the files of runs: `CADRE_ARTIFACTS`, which is `s3://bucket/prefix` or `file:///folder`.

import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CadreError } from '../../error.ts'
import { wholeNumber } from '../../whole-number.ts'
import type { ArtifactStore } from '../core/artifact-store.ts'
import { type BucketAddress, bucketStore } from './bucket.ts'
import { folderStore } from './folder.ts'

type Environment = Record<string, string | undefined>

const MIB = 1024 * 1024
/** What S3 takes in one request. */
const MOST_MIB = 5 * 1024

/** Null when `CADRE_ARTIFACTS` is not set. Throws `invalid_request` for a value that cannot be used. */
export function artifactStore(env: Environment): ArtifactStore | null {
  const given = env.CADRE_ARTIFACTS
  if (!given) return null
  const most = mostBytes(env.CADRE_ARTIFACTS_MAX_MB)
  const url = URL.parse(given)
  if (url?.protocol === 'file:') return folderStore(folderOf(given), most)
  if (url?.protocol === 's3:') return bucketStore(bucketOf(given, env), most)
  throw wrong(`expected s3://bucket/prefix or file:///folder, got ${given}`)
}

const wrong = (what: string, name = 'CADRE_ARTIFACTS') => new CadreError('invalid_request', `${name}: ${what}`)

function mostBytes(given: string | undefined): number {
  return wholeNumber('CADRE_ARTIFACTS_MAX_MB', given || String(MOST_MIB), MOST_MIB, 1) * MIB
}

/** The folder must exist: one that is made here might lie below a mount that is missing. */
function folderOf(given: string): string {
  let path: string
  try {
    path = fileURLToPath(given)
  } catch {
    throw wrong(`expected a folder such as file:///srv/cadre, got ${given}`)
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path
  throw wrong(`there is no folder ${path}; make it, or mount it`)
}

function bucketOf(given: string, env: Environment): BucketAddress {
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w./-]*))?$/.exec(given) ?? []
  if (bucket === undefined || prefix.split('/').some(part => part === '.' || part === '..')) {
    throw wrong(`expected s3://bucket/prefix, with letters, digits and ._-/ in the prefix, got ${given}`)
  }
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || undefined
  if (endpoint !== undefined && !/^https?:\/\/[^/?#@]+\/*$/.test(endpoint)) {
    throw wrong(`expected an address such as https://storage.acme.com, got ${endpoint}`, 'AWS_ENDPOINT_URL_S3')
  }
  const sessionToken = env.AWS_SESSION_TOKEN || undefined
  return {
    bucket,
    prefix: prefix.split('/').filter(Boolean).join('/'),
    region: env.AWS_REGION || env.AWS_DEFAULT_REGION || 'us-east-1',
    endpoint,
    keys: {
      accessKeyId: required('AWS_ACCESS_KEY_ID', env),
      secretAccessKey: required('AWS_SECRET_ACCESS_KEY', env),
      ...(sessionToken !== undefined && { sessionToken }),
    },
  }
}

function required(name: string, env: Environment): string {
  const value = env[name]
  if (value) return value
  throw wrong('it must be set, because CADRE_ARTIFACTS is a bucket', name)
}
