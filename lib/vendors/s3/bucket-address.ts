// Where a bucket is reached: the address, and the region that its signature names. Pure.

import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'

export interface StoreSettings {
  access_key_id: string
  secret_access_key: string
  session_token?: string
  endpoint?: string
  region?: string
  addressing?: 'path' | 'virtual'
}

export interface Bucket {
  /** The address of the bucket, with a slash at its end. */
  address: string
  region: string
  /** Whether the address is AWS's, which names the region. */
  isAws: boolean
}

const REGION = /^[a-z]{2}(?:-[a-z]+)+-\d+$/
/** An availability zone (eu-west-1a) or a local zone (us-west-2-lax-1a), with its region. */
const ZONE = /^([a-z]{2}(?:-[a-z]+)+-\d+)(?:[a-z]|-[a-z]+-\d+[a-z]?)$/
const AWS = /^(?:(.+)\.)?s3(?:[.-](?:dualstack\.)?([a-z]{2}(?:-[a-z]+)+-\d+))?\.amazonaws\.com(?:\.cn)?$/
/** Names that a certificate for `*.s3.…` covers. */
const HOST_LABEL = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/

/** What is wrong with the settings of a store, in words that continue the key. */
export function whyNoStore({ endpoint, region }: { endpoint?: string | undefined; region?: string | undefined }) {
  const given = endpoint === undefined ? null : URL.parse(endpoint)
  const { host = '', hostname = '', pathname = '/' } = given ?? {}
  const isAws = endpoint === undefined || AWS.test(hostname)
  const isPage = /(^|\.)console\.(aws\.amazon|amazonaws)\.com(\.cn)?$/.test(hostname)
  return {
    endpoint:
      (isPage && 'must not be a page of AWS: remove it, because AWS needs no endpoint') ||
      (endpoint !== undefined && !given && 'must be the address of a store: write it as https://storage.acme.com') ||
      (isAws && /[^/]\/+[^/]/.test(pathname) && `must not have a path: write https://${host}, and the key in ref`),
    region:
      isAws && region !== undefined && !REGION.test(region) && !ZONE.test(region)
        ? 'must be a region of AWS: write the region of the bucket, such as eu-west-1'
        : null,
  }
}

/** The bucket that an endpoint of AWS names; null for one that serves all buckets. */
export function bucketIn(endpoint: string | undefined): string | null {
  const url = URL.parse(endpoint ?? '')
  const [isAws, inHost] = AWS.exec(url?.hostname ?? '') ?? []
  return isAws === undefined ? null : (inHost ?? url!.pathname.replaceAll('/', '')) || null
}

/**
 * The address of a bucket. `learned` is the region that the store has named. Throws an AgentError `invalid_settings` for an
 * endpoint of AWS that belongs to another bucket.
 */
export function bucketAt(
  { agent, callName, settings }: Pick<AgentContext<StoreSettings>, 'agent' | 'callName' | 'settings'>,
  bucket: string,
  learned?: string,
): Bucket {
  const given = settings.endpoint === undefined ? null : new URL(settings.endpoint)
  const [isAwsHost, , regionInHost] = AWS.exec(given?.hostname ?? '') ?? []
  const isAws = given === null || isAwsHost !== undefined
  const asked = settings.region ?? regionInHost ?? 'us-east-1'
  const region = learned ?? (isAws ? (ZONE.exec(asked)?.[1] ?? asked) : asked)
  const path = given?.pathname.replace(/^\/+|\/+$/g, '') ?? ''
  const host = isAws ? `s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}` : given.host
  const scheme = given?.protocol ?? 'https:'
  const own = bucketIn(settings.endpoint)
  if (own !== null && own !== bucket) {
    throw new AgentError(`[${callName}] agents.${agent}.endpoint belongs to the bucket ${own}, not to ${bucket}`, {
      code: 'invalid_settings',
      hint: `set agents.${agent}.endpoint to ${scheme}//${host}, and name the bucket in \`ref\`: s3://bucket/key`,
      sent: 'no',
    })
  }
  const standard = isAws && HOST_LABEL.test(bucket) ? 'virtual' : 'path'
  // Some stores have a path of their own. A bucket at its end is left out, because it is named by `ref`.
  const prefix = isAws ? '' : path.replace(new RegExp(`(^|/)${RegExp.escape(bucket)}$`), '')
  const below = prefix && `${prefix}/`
  const address =
    (settings.addressing ?? standard) === 'virtual'
      ? `${scheme}//${bucket}.${host}/${below}`
      : `${scheme}//${host}/${below}${bucket}/`
  return { address, region, isAws }
}

/** The addresses at which `bucketAt` finds buckets, whatever their names and regions are. */
export function storeAddresses({ endpoint }: Pick<StoreSettings, 'endpoint'>): readonly string[] {
  const given = endpoint === undefined ? null : URL.parse(endpoint)
  if (given && !AWS.test(given.hostname)) return [given.origin, `${given.protocol}//*.${given.host}`]
  return ['', '.cn'].flatMap(end => [`https://s3.*.amazonaws.com${end}`, `https://*.s3.*.amazonaws.com${end}`])
}

/** The region in an address of AWS. */
export function regionIn(address: string | null): string | undefined {
  return AWS.exec(URL.parse(address ?? '')?.hostname ?? '')?.[2]
}
