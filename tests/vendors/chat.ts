// A strict stand-in for incoming webhooks of Slack, in the same words, and of Teams' workflows at `/workflows`.

import { type FakeVendor, fakeVendor, type VendorRequest } from '../../lib/testing/fake-vendor.ts'

export interface Post {
  path: string
  payload: {
    text: string
    blocks: { type: string; text?: { type: string; text: string }; elements?: { type: string; text: string }[] }[]
  }
}

export interface ChatVendor extends FakeVendor {
  /** The webhook of a channel. */
  hook(name: string): string
  /** The webhook of a workflow of Teams. */
  workflow: string
  posts: Post[]
  /** The cards that the workflow took. */
  cards: { body: { type: string; text: string }[]; actions?: { url: string }[] }[]
  /** Answers for a channel, one after the other, before the ordinary ones. */
  answer(name: string, ...replies: (() => Response | Promise<Response>)[]): void
}

const SECRET = 'B0CANARY/xoxcanarysecret'

export function chatVendor(): ChatVendor {
  const posts: Post[] = []
  const cards: ChatVendor['cards'] = []
  const answers = new Map<string, (() => Response | Promise<Response>)[]>()
  const vendor = fakeVendor(async request => {
    if (request.path === `/workflows/${SECRET}`) return runWorkflow(request, cards)
    const [, name, secret] = /^\/services\/([a-z]+)\/(.+)$/.exec(request.path) ?? []
    if (!name || secret !== SECRET) return new Response('no_service', { status: 404 })
    if (request.method !== 'POST') return new Response('invalid_http_method', { status: 405 })
    const payload = request.body as Post['payload']
    const why = refusalOf(request, payload)
    if (why) return new Response(why, { status: 400 })
    const reply = await answers.get(name)?.shift()?.()
    if (reply && !reply.ok) return reply
    posts.push({ path: name, payload })
    return reply ?? new Response('ok', { headers: { 'content-type': 'text/html' } })
  })
  return Object.assign(vendor, {
    hook: (name: string) => `${vendor.url}/services/${name}/${SECRET}`,
    workflow: `${vendor.url}/workflows/${SECRET}`,
    posts,
    cards,
    answer: (name: string, ...replies: (() => Response | Promise<Response>)[]) => void answers.set(name, replies),
  })
}

function refusalOf(request: VendorRequest, { text, blocks }: Post['payload']): string | null {
  if (!request.headers.get('content-type')?.startsWith('application/json')) return 'invalid_payload'
  if (typeof text !== 'string' || text === '') return 'no_text'
  // Slack cuts off what is longer, in the middle of whatever stands there.
  if (text.length > 40_000) return 'msg_too_long'
  if (!Array.isArray(blocks) || blocks.length > 50) return 'invalid_blocks'
  for (const { type, text, elements } of blocks) {
    if (type === 'section' && (!text?.text || text.text.length > 3_000)) return 'invalid_blocks'
    if (type === 'context' && !elements?.every(element => element.type === 'mrkdwn' && element.text)) {
      return 'invalid_blocks'
    }
  }
  return null
}

/** Takes one card within the size that Teams takes, and answers before it posts. */
function runWorkflow({ headers, body }: VendorRequest, cards: ChatVendor['cards']): Response {
  const { type, attachments } = body as { type?: string; attachments?: { contentType: string; content: never }[] }
  const [card] = attachments ?? []
  const isCard = type === 'message' && card?.contentType === 'application/vnd.microsoft.card.adaptive'
  if (!isCard) return Response.json({ error: { code: 'TriggerInputSchemaMismatch' } }, { status: 400 })
  if (Number(headers.get('content-length')) > 28 * 1024) return new Response('', { status: 413 })
  cards.push(card.content)
  return new Response('', { status: 202 })
}
