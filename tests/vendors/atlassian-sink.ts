// Jira and Confluence with results and files of any size, of which they keep none: they make up what they give and count
// what they take. What is right of them besides, other tests show.

import { zeros } from './sink.ts'

export interface AtlassianSink {
  url: string
  /** Bytes that were taken, of the last upload. */
  taken: number
  [Symbol.dispose](): void
}

export interface Sizes {
  /** The number of results of a search. */
  results: number
  /** The size of each result. */
  resultBytes: number
  /** The size of the only attachment. */
  fileBytes: number
}

export function atlassianSink({ results, resultBytes, fileBytes }: Sizes): AtlassianSink {
  const filler = 'x'.repeat(resultBytes)
  const page = <T>(start: number, size: number, make: (number: number) => T) =>
    Array.from({ length: Math.min(size, results - start) }, (_, at) => make(start + at + 1))
  const issue = (n: number) => ({ id: `${n}`, key: `WEB-${n}`, fields: { summary: `Issue ${n}`, description: filler } })
  const answer = async (request: Request): Promise<Response> => {
    const { pathname, searchParams: query } = new URL(request.url)
    if (pathname.endsWith('/search/jql')) {
      const { nextPageToken: start = '0', maxResults } = (await request.json()) as Record<string, string>
      const end = Number(start) + Number(maxResults)
      const token = end < results ? { nextPageToken: `${end}` } : {}
      return Response.json({ issues: page(Number(start), Number(maxResults), issue), ...token })
    }
    if (pathname === '/wiki/rest/api/search') {
      const end = Number(query.get('start') ?? 0) + Number(query.get('limit'))
      const found = page(Number(query.get('start') ?? 0), Number(query.get('limit')), n => ({
        ...{ title: `Page ${n}`, content: { id: `${n}`, type: 'page', title: `Page ${n}` } },
        excerpt: filler,
      }))
      const next = end < results ? { next: `/rest/api/search?start=${end}` } : {}
      return Response.json({ results: found, totalSize: results, _links: next })
    }
    if (request.method !== 'GET') {
      state.taken = 0
      if (request.body) for await (const chunk of request.body) state.taken += chunk.byteLength
      const attached = { id: '2', filename: 'large', title: 'large', size: fileBytes }
      return Response.json(pathname.startsWith('/wiki/') ? { results: [attached] } : [attached])
    }
    if (pathname.startsWith('/rest/api/3/attachment/') || pathname.endsWith('/download')) {
      return new Response(zeros(fileBytes), { headers: { 'content-length': `${fileBytes}` } })
    }
    const file = {
      id: '1',
      filename: 'other',
      title: 'other',
      size: fileBytes,
      fileSize: fileBytes,
      version: { number: 1 },
    }
    if (pathname.endsWith('/attachments')) return Response.json({ results: [file] })
    const wiki = { status: 'current', title: 'Page', version: { number: 1 }, body: { storage: { value: '' } } }
    return Response.json({ id: '1', key: 'WEB-1', fields: { attachment: [file] }, ...wiki })
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: answer,
  })
  const state: AtlassianSink = {
    url: server.url.origin,
    taken: 0,
    [Symbol.dispose]: () => void server.stop(true),
  }
  return state
}
