// What a language model is asked and what it answers, in no vendor's form.

import type { JsonObject } from '../../json.ts'

/** A file that is sent with the prompt. `content` is text, or base64 for the other kinds. */
export interface Input {
  kind: 'text' | 'image' | 'pdf'
  name: string
  /** The media type. */
  type: string
  content: string
}

export interface Question {
  model: string
  prompt: string
  system?: string | undefined
  inputs: readonly Input[]
  /** The JSON Schema that the reply must fit. */
  schema?: JsonObject | undefined
  max_tokens?: number | undefined
  temperature?: number | undefined
  /** A first reply that did not fit, and what was wrong with it. */
  repair?: { reply: string; problem: string } | undefined
}

export interface Answer {
  text: string
  /** The model that answered, which a vendor may name more precisely than the question did. */
  model: string
  /** Null where the server does not count. */
  input_tokens: number | null
  output_tokens: number | null
  /** Why the reply ended: it is complete, it reached a limit, the model refused, or another reason of the vendor. */
  ended: 'complete' | 'limit' | 'refusal' | 'other'
  /** The vendor's words for the end: a stop reason, or the text of a refusal. */
  reason: string
}

/** The prompt with the text files after it, each in its own element. */
export function promptOf({ prompt, inputs }: Question): string {
  const texts = inputs.filter(({ kind }) => kind === 'text')
  return [prompt, ...texts.map(({ name, content }) => `<file name=${JSON.stringify(name)}>\n${content}\n</file>`)].join(
    '\n\n',
  )
}

/** The request to correct a reply. */
export function repairOf(problem: string): string {
  return `This reply cannot be used: ${problem}. Reply again with only a JSON value that fits the schema.`
}
