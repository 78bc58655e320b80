// The form of chat completions, which OpenAI, its imitators and local servers share.
// https://platform.openai.com/docs/api-reference/chat

import type { JsonObject } from '../../json.ts'
import { Type } from '../../schema/type.ts'
import { type Answer, type Input, promptOf, type Question, repairOf } from './question.ts'
import { isStrict } from './structured.ts'

/** What a chat completion contains at least. */
export const OpenaiReply = Type.Object({
  choices: Type.Array(
    Type.Object({
      message: Type.Object({
        content: Type.Optional(Type.Union([Type.String(), Type.Null()])),
        refusal: Type.Optional(Type.Union([Type.String(), Type.Null()])),
      }),
      finish_reason: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    }),
    { minItems: 1 },
  ),
  model: Type.Optional(Type.String()),
  usage: Type.Optional(
    Type.Union([
      Type.Object({
        prompt_tokens: Type.Optional(Type.Integer()),
        completion_tokens: Type.Optional(Type.Integer()),
      }),
      Type.Null(),
    ]),
  ),
})

/**
 * The body of a request. OpenAI and Azure renamed `max_tokens` and refuse the old name for newer models; other servers
 * know only the old name.
 */
export function openaiBody(question: Question, host: string): JsonObject {
  const { model, system, inputs, schema, max_tokens, temperature, repair } = question
  const limit = /(^|\.)(openai|azure)\.com$/.test(host) ? 'max_completion_tokens' : 'max_tokens'
  const parts = inputs.flatMap(partsOf)
  const text = promptOf(question)
  return {
    model,
    messages: [
      ...(system === undefined ? [] : [{ role: 'system', content: system }]),
      { role: 'user', content: parts.length === 0 ? text : [{ type: 'text', text }, ...parts] },
      ...(repair
        ? [
            { role: 'assistant', content: repair.reply },
            { role: 'user', content: repairOf(repair.problem) },
          ]
        : []),
    ],
    ...(max_tokens !== undefined && { [limit]: max_tokens }),
    ...(temperature !== undefined && { temperature }),
    ...(schema && {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'reply', schema, strict: isStrict(schema) },
      },
    }),
  }
}

function partsOf({ kind, name, type, content }: Input): JsonObject[] {
  const data = `data:${type};base64,${content}`
  if (kind === 'image') return [{ type: 'image_url', image_url: { url: data } }]
  return kind === 'pdf' ? [{ type: 'file', file: { filename: name, file_data: data } }] : []
}

const ENDS: Record<string, Answer['ended']> = { stop: 'complete', length: 'limit', content_filter: 'refusal' }

export function openaiAnswer(reply: Type.Static<typeof OpenaiReply>, model: string): Answer {
  const { message, finish_reason } = reply.choices[0]!
  const reason = finish_reason ?? 'stop'
  return {
    text: message.content ?? '',
    model: reply.model || model,
    input_tokens: reply.usage?.prompt_tokens ?? null,
    output_tokens: reply.usage?.completion_tokens ?? null,
    ended: message.refusal ? 'refusal' : (ENDS[reason] ?? 'other'),
    reason: message.refusal || reason,
  }
}
