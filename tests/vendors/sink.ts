// A server for files of any size, of which it keeps none: it counts what it takes and makes up what it gives, as a plain
// HTTP server, an object store and Google Drive do. What is right of them besides, other tests show.

export interface Sink {
  url: string
  /** Bytes that were taken, of the last upload. */
  taken: number
  /** Requests for a part or chunk of it. */
  parts: number
  [Symbol.dispose](): void
}

/** Gives files of `size` bytes. */
export function sink(size: number, tls?: { cert: string; key: string }): Sink {
  const answer = async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url)
    const { method } = request
    if (pathname === '/token') return Response.json({ access_token: 'canary-token', expires_in: 3_599 })
    if (pathname.startsWith('/upload/drive/')) return takeChunk(request, state)
    if (pathname.endsWith('/generateIds')) return Response.json({ ids: ['large'] })
    if (pathname.startsWith('/drive/') && searchParams.get('alt') !== 'media') {
      return Response.json({ id: 'large', name: 'large', mimeType: 'application/octet-stream', size: `${size}` })
    }
    if (method === 'GET') return new Response(zeros(size), { headers: { ...STORED, 'content-length': `${size}` } })
    if (method === 'HEAD')
      return new Response(null, { headers: { ...STORED, 'content-length': `${state.taken || size}` } })
    if (searchParams.has('uploads'))
      return xml('<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>')
    if (method === 'POST' && searchParams.has('uploadId')) {
      return xml('<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>')
    }
    await count(request, state)
    return Response.json({ taken: state.taken }, { headers: STORED })
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: answer,
    ...(tls && { tls }),
  })
  const { protocol, port } = server.url
  const state: Sink = {
    url: `${protocol}//${tls ? 'localhost' : '127.0.0.1'}:${port}`,
    taken: 0,
    parts: 0,
    [Symbol.dispose]: () => void server.stop(true),
  }
  return state
}

const STORED = { etag: '"e"', 'last-modified': 'Sat, 21 Nov 2026 09:00:00 GMT' }
const xml = (text: string) => new Response(text, { headers: { 'content-type': 'application/xml' } })

/** Drive's own words: https://developers.google.com/workspace/drive/api/guides/manage-uploads */
async function takeChunk(request: Request, state: Sink): Promise<Response> {
  if (request.method !== 'PUT') {
    const { pathname } = new URL(request.url)
    return new Response(null, { headers: { location: `https://www.googleapis.com${pathname}?upload_id=u` } })
  }
  await count(request, state)
  const total = Number(request.headers.get('content-range')?.split('/')[1])
  if (state.taken === total)
    return Response.json({ id: 'large', name: 'large', mimeType: 'application/octet-stream', size: `${total}` })
  return new Response(null, { status: 308, headers: { range: `bytes=0-${state.taken - 1}` } })
}

async function count({ body }: Request, state: Sink): Promise<void> {
  state.parts++
  if (body) for await (const chunk of body) state.taken += chunk.byteLength
}

export function zeros(size: number): ReadableStream<Uint8Array> {
  const chunk = new Uint8Array(256 * 1024)
  let left = size
  return new ReadableStream({
    pull(controller) {
      if (left === 0) return controller.close()
      controller.enqueue(chunk.slice(0, Math.min(left, chunk.byteLength)))
      left -= Math.min(left, chunk.byteLength)
    },
  })
}
