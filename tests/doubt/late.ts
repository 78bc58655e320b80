// A vendor that a proxy gives up on: the request is answered 504 at once, and what it asked for is done later.

import { type FakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'

/** The requests that are still to be done. `done` resolves when the vendor has done all of them. */
export interface Late {
  done(): Promise<void>
}

/**
 * The next request that matches is answered 504, and is done `after` milliseconds later, or after that promise, as if it
 * arrived only then.
 */
export function late(vendor: FakeVendor, match: RegExp, after: number | Promise<unknown>): Late {
  const pending: Promise<unknown>[] = []
  vendor.fail(match, request => {
    const landed = typeof after === 'number' ? Bun.sleep(after) : after
    pending.push(landed.then(() => again(vendor, request)))
    return refusal(504, 'the proxy waited too long')
  })
  return { done: async () => void (await Promise.all(pending)) }
}

async function again(vendor: FakeVendor, { method, path, query, headers, body }: VendorRequest): Promise<void> {
  const given = new Headers(headers)
  for (const name of ['host', 'content-length', 'connection', 'accept-encoding']) given.delete(name)
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  await (await fetch(`${vendor.url}${path}?${query}`, { method, headers: given, body: sent })).text()
}
