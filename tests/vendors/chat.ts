// A strict stand-in for Slack's incoming webhooks: what it refuses is refused there, in the same words.

export interface Post {
  path: string
  payload: {
    text: string
    blocks: { type: string; text?: { type: string; text: string }; elements?: { type: string; text: string }[] }[]
  }
}

export interface ChatVendor {
  /** The webhook of a channel. */
  hook(name: string): string
  posts: Post[]
  /** Answers for a channel, one after the other, before the ordinary ones. */
  answer(name: string, ...replies: (() => Response | Promise<Response>)[]): void
  [Symbol.dispose](): void
}

const SECRET = 'B0CANARY/xoxcanarysecret'

export function chatVendor(): ChatVendor {
  const posts: Post[] = []
  const answers = new Map<string, (() => Response | Promise<Response>)[]>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const [, name, secret] = /^\/services\/([a-z]+)\/(.+)$/.exec(pathname) ?? []
      if (!name || secret !== SECRET) return new Response('no_service', { status: 404 })
      if (request.method !== 'POST') return new Response('invalid_http_method', { status: 405 })
      const payload = JSON.parse(await request.text())
      const refusal = refusalOf(request, payload)
      if (refusal) return new Response(refusal, { status: 400 })
      const reply = await answers.get(name)?.shift()?.()
      if (reply && !reply.ok) return reply
      posts.push({ path: name, payload })
      return reply ?? new Response('ok', { headers: { 'content-type': 'text/html' } })
    },
  })
  return {
    hook: name => `http://127.0.0.1:${server.port}/services/${name}/${SECRET}`,
    posts,
    answer: (name, ...replies) => void answers.set(name, replies),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

function refusalOf(request: Request, { text, blocks }: Post['payload']): string | null {
  if (!request.headers.get('content-type')?.startsWith('application/json')) return 'invalid_payload'
  if (typeof text !== 'string' || text === '') return 'no_text'
  if (!Array.isArray(blocks) || blocks.length > 50) return 'invalid_blocks'
  for (const { type, text, elements } of blocks) {
    if (type === 'section' && (!text?.text || text.text.length > 3_000)) return 'invalid_blocks'
    if (type === 'context' && !elements?.every(element => element.type === 'mrkdwn' && element.text)) {
      return 'invalid_blocks'
    }
  }
  return null
}
