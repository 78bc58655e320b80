// Language models for tests: an OpenAI-compatible server and Anthropic's messages, which check what they are sent.

import { type FakeVendor, fakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'

export const KEY = 'sk-canary-of-the-model-4f'
export const MODEL = 'model-1'

export interface FakeModel extends FakeVendor {
  model: Model
}

interface Model {
  /** What the model says, reply by reply; the last one is said again. */
  says: string[]
  /** Why a reply ends, in the vendor's word; absent where it is complete. */
  ends?: string
  /** OpenAI's text of a refusal. */
  refuses?: string
}

// biome-ignore lint/suspicious/noExplicitAny: what clients send.
type Body = Record<string, any>

export function fakeOpenai(): FakeModel {
  const model: Model = { says: ['hello'] }
  const vendor = fakeVendor(
    {
      'GET /v1/models': () => ({ object: 'list', data: [{ id: MODEL, object: 'model' }] }),
      'POST /v1/chat/completions': ({ body }) => {
        const { messages, model: name, ...unknown } = body as Body
        if (name !== MODEL) return refusal(404, { error: { message: `The model ${name} does not exist` } })
        if (!Array.isArray(messages) || messages.at(-1).role !== 'user') return refusal(400, { error: 'messages' })
        const known = ['max_tokens', 'max_completion_tokens', 'temperature', 'response_format']
        const wrong = Object.keys(unknown).filter(key => !known.includes(key))
        if (wrong.length > 0) return refusal(400, { error: { message: `unknown ${wrong}` } })
        return {
          id: 'chatcmpl-1',
          object: 'chat.completion',
          model: `${MODEL}-2026`,
          choices: [
            {
              index: 0,
              message: { role: 'assistant', content: next(model), refusal: model.refuses ?? null },
              finish_reason: model.ends ?? 'stop',
            },
          ],
          usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
        }
      },
    },
    { allows: ({ headers }) => headers.get('authorization') === `Bearer ${KEY}` },
  )
  return linked(vendor, model)
}

export function fakeAnthropic(): FakeModel {
  const model: Model = { says: ['hello'] }
  const allows = ({ headers }: VendorRequest) =>
    headers.get('x-api-key') === KEY && headers.get('anthropic-version') === '2023-06-01'
  const vendor = fakeVendor(
    {
      'GET /v1/models': () => ({ data: [{ id: MODEL, type: 'model' }], has_more: false }),
      'POST /v1/messages': ({ body }) => {
        const { messages, model: name, max_tokens } = body as Body
        if (name !== MODEL) return refusal(404, { type: 'error', error: { type: 'not_found_error', message: name } })
        if (!Number.isInteger(max_tokens)) return refusal(400, { error: { message: 'max_tokens: Field required' } })
        if (!Array.isArray(messages) || messages.some(({ content }) => content.length === 0)) {
          return refusal(400, { error: { message: 'text content blocks must be non-empty' } })
        }
        return {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: `${MODEL}-2026`,
          content: [{ type: 'text', text: next(model) }],
          stop_reason: model.ends ?? 'end_turn',
          usage: { input_tokens: 8, cache_read_input_tokens: 2, output_tokens: 5 },
        }
      },
    },
    { allows },
  )
  return linked(vendor, model)
}

function next({ says }: Model): string {
  return says.length > 1 ? says.shift()! : says[0]!
}

/** The server and its model, whose fields tests set. */
function linked(vendor: FakeVendor, model: Model): FakeModel {
  return { ...vendor, model }
}
