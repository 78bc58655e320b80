// The objects below a prefix, a page at a time.

import { AgentError } from '../../agent/core/agent-error.ts'
import { ADDRESS } from '../../agent/json-api.ts'
import type { Page } from '../../agent/listing.ts'
import { type ObjectAddress, type StoreContext, storeRequest, urlOf } from './request.ts'
import { parseXml, textOf } from './xml.ts'

const PAGE = 1_000

/** A type instead of an interface, because an interface is not assignable to Json. */
export type StoredObject = { key: string; size: number; etag: string | null; last_modified: string | null }

/** One page of the objects below `object`, in the order of their keys. */
export async function objectsPage(
  context: StoreContext,
  object: ObjectAddress,
  token?: string,
): Promise<Page<StoredObject, string>> {
  const query = {
    'list-type': '2',
    prefix: object.key,
    'max-keys': `${PAGE}`,
    ...(token !== undefined && { 'continuation-token': token }),
  }
  const bucket = { ...object, key: '' }
  const reply = await storeRequest(context, bucket, { query, permission: 's3:ListBucket' }).catch(error => {
    // The request is that of the bucket; people know the prefix.
    throw error instanceof AgentError ? renamed(error, urlOf(bucket), urlOf(object)) : error
  })
  const xml = parseXml(await reply.text())
  if (xml?.name !== 'ListBucketResult') {
    const message = `[${context.callName}] ${urlOf(object)}: the reply is not that of S3`
    throw new AgentError(message, { code: 'unexpected_reply', hint: ADDRESS })
  }
  const items = xml.children
    .filter(({ name }) => name === 'Contents')
    .map(each => ({
      key: textOf(each, 'Key') ?? '',
      size: Number(textOf(each, 'Size') ?? 0),
      etag: textOf(each, 'ETag') ?? null,
      last_modified: textOf(each, 'LastModified') ?? null,
    }))
  return { items, next: textOf(xml, 'IsTruncated') === 'true' ? textOf(xml, 'NextContinuationToken') : null }
}

function renamed({ message, code, hint, retryable, sent, cause }: AgentError, from: string, to: string): AgentError {
  const options = { code, retryable, cause, ...(hint && { hint }), ...(sent && { sent }) }
  return new AgentError(
    message.replace(`${from}:`, () => `${to}:`),
    options,
  )
}
