// The form of Anthropic's messages.
// https://docs.claude.com/en/api/messages  https://docs.claude.com/en/docs/build-with-claude/structured-outputs

import type { JsonObject } from '../../json.ts'
import { Type } from '../../schema/type.ts'
import { type Answer, type Input, promptOf, type Question, repairOf } from './question.ts'
import { withoutLimits } from './structured.ts'

/** Anthropic demands a limit. This one is accepted by every model. */
const MAX_TOKENS = 4_096

/** What a message contains at least. */
export const AnthropicReply = Type.Object({
  content: Type.Array(Type.Object({ type: Type.String(), text: Type.Optional(Type.String()) })),
  stop_reason: Type.Union([Type.String(), Type.Null()]),
  model: Type.String(),
  usage: Type.Object({
    input_tokens: Type.Integer(),
    output_tokens: Type.Integer(),
    cache_creation_input_tokens: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
    cache_read_input_tokens: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
  }),
})

/** The body of a request. */
export function anthropicBody(question: Question): JsonObject {
  const { model, system, inputs, schema, max_tokens = MAX_TOKENS, temperature, repair } = question
  return {
    model,
    max_tokens,
    ...(system !== undefined && { system }),
    messages: [
      { role: 'user', content: [...inputs.flatMap(blocksOf), { type: 'text', text: promptOf(question) }] },
      ...(repair
        ? [
            // Anthropic refuses a message without text.
            { role: 'assistant', content: repair.reply.trimEnd() || '(empty)' },
            { role: 'user', content: repairOf(repair.problem) },
          ]
        : []),
    ],
    ...(temperature !== undefined && { temperature }),
    ...(schema && { output_config: { format: { type: 'json_schema', schema: withoutLimits(schema) } } }),
  }
}

function blocksOf({ kind, type, content }: Input): JsonObject[] {
  if (kind === 'text') return []
  const source = { type: 'base64', media_type: type, data: content }
  return [{ type: kind === 'image' ? 'image' : 'document', source }]
}

const ENDS: Record<string, Answer['ended']> = {
  end_turn: 'complete',
  stop_sequence: 'complete',
  max_tokens: 'limit',
  model_context_window_exceeded: 'limit',
  refusal: 'refusal',
}

export function anthropicAnswer(reply: Type.Static<typeof AnthropicReply>): Answer {
  const { content, stop_reason, model, usage } = reply
  const reason = stop_reason ?? 'end_turn'
  const cached = (usage.cache_creation_input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0)
  return {
    text: content.map(({ text = '' }) => text).join(''),
    model,
    input_tokens: usage.input_tokens + cached,
    output_tokens: usage.output_tokens,
    ended: ENDS[reason] ?? 'other',
    reason,
  }
}
