// The door of what the agent for language models needs.

export { AnthropicReply, anthropicAnswer, anthropicBody } from './anthropic.ts'
export { inputsOf } from './inputs.ts'
export { OpenaiReply, openaiAnswer, openaiBody } from './openai.ts'
export type { Answer, Question } from './question.ts'
export { readJson, whyNoSchema } from './structured.ts'
