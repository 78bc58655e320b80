// llm: asks a language model, and writes its reply to a file.
//
//   settings: provider openai: the chat completions of OpenAI, or of any server that imitates them (base_url)
//             provider anthropic: Anthropic's messages
//             model, api_key (may be absent for a server of base_url), base_url?
//   complete  sources: [{ name, prompt, system?, file?, files?, schema?, model?, max_tokens?, temperature? }]
//
// `files` (text, PNG, JPEG, GIF, WebP, PDF; 20 MiB together) are sent with the prompt. The reply is written to
// files/<phase>/<name>. With `schema`, a JSON Schema of an object, the vendor's structured form is requested, the reply
// is checked here as well, and a reply that does not fit is sent back once to be repaired. Patterns are RE2, without
// references to groups and without look-around; `$ref` names a part of the schema. `data` has model,
// input_tokens, output_tokens and requests (1 or 2, whose tokens are added), and, up to 256 KiB, the `text` of the reply
// or its `json`.
//
// A reply that ends at a limit is an error, and so is a refusal. A request costs money even if its reply is lost, so it
// is repeated only when it was certainly not processed: no connection, 429, 503 and 529. A reply may take up to 30
// minutes; the phase's `timeout` ends it earlier. The phase's `retry` asks, and pays, again.
// The key is sent only over https, or to this machine.
//
// https://platform.openai.com/docs/api-reference/chat  https://docs.claude.com/en/api/messages

import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  entryOf,
  type JsonObject,
  jsonApi,
  secret,
  Type,
} from 'cadre'
import {
  type Answer,
  AnthropicReply,
  anthropicAnswer,
  anthropicBody,
  filePath,
  inputsOf,
  nullable,
  OpenaiReply,
  openaiAnswer,
  openaiBody,
  type Question,
  readJson,
  whyNoSchema,
} from 'cadre/vendors'

/** Milliseconds. Vendors end a request that is not streamed after ten minutes; a local server may take longer. */
const LONGEST = 30 * 60_000
/** Maximum number of bytes of the reply in `data`. The file contains all of it. */
const SHOWN_MOST = 256 * 1024

const Text = Type.String({ minLength: 1 })
const Settings = Type.Object(
  {
    provider: Type.Enum(['openai', 'anthropic'], {
      description: 'The form of the API. Servers that imitate OpenAI, such as local ones, are `openai`.',
    }),
    model: Type.String({ minLength: 1, description: 'The model for entries that name none.' }),
    api_key: Type.Optional(secret({ description: 'The key of the API. A server of `base_url` may do without a key.' })),
    base_url: Type.Optional(
      Type.String({
        pattern: '^https?://[^/]',
        'x-expected': 'an address such as http://127.0.0.1:11434/v1',
        description: 'The address of another server, before /chat/completions or /v1/messages.',
      }),
    ),
  },
  { additionalProperties: false },
)
type Context = AgentContext<Type.Static<typeof Settings>>

const Entry = entryOf({
  prompt: Type.String({ minLength: 1, description: 'What the model is asked.' }),
  system: Type.Optional(
    Type.String({ minLength: 1, description: 'Instructions for the model that apply to the whole conversation.' }),
  ),
  file: Type.Optional(filePath('The path of a file that is sent with the prompt.')),
  files: Type.Optional(
    Type.Array(filePath('The path of a file.'), { description: 'The paths of files that are sent with the prompt.' }),
  ),
  schema: Type.Optional(
    Type.Object(
      { type: Type.Literal('object', { description: 'The type of the reply, which is always an object.' }) },
      {
        additionalProperties: true,
        'x-json-schema': true,
        description: 'The JSON Schema that the reply must fit. At its top it must describe an object.',
      },
    ),
  ),
  model: Type.Optional(Type.String({ minLength: 1, description: 'The model. The default is that of the settings.' })),
  max_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'The maximum length of the reply in tokens: by default 4,096 for Anthropic, else the server’s own.',
    }),
  ),
  temperature: Type.Optional(
    Type.Number({ minimum: 0, maximum: 2, description: 'How much chance has a part in the reply, from 0 on.' }),
  ),
})
type Entry = Type.Static<typeof Entry>

const tokens = (description: string) => nullable(Type.Integer(), { description })
const Replied = Type.Object({
  model: Type.String({ description: 'The model that answered.' }),
  input_tokens: tokens('The tokens that were read; null if the server does not count them.'),
  output_tokens: tokens('The tokens that were written; null if the server does not count them.'),
  requests: Type.Integer({ description: 'How many requests it took: 1, or 2 after a repair.' }),
  text: Type.Optional(Type.String({ description: 'The reply, if there is no `schema`; up to 256 KiB.' })),
  json: Type.Optional(Type.Unknown({ description: 'The reply that fits the `schema`; up to 256 KiB.' })),
})

const Models = Type.Object({ data: Type.Array(Type.Object({ id: Text })) })

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Asks a language model of OpenAI, of Anthropic or of a compatible server.',
  settings: Settings,
  addresses: settings => [baseOf({ settings })],
  account: apiOf,
  missing: ({ api_key, base_url }) => (api_key || base_url ? [] : ['api_key']),
  /** Lists the models, which costs nothing. */
  async doctor(context) {
    const { provider, model } = context.settings
    const call = modelApi(context)<Type.Static<typeof Models>>
    const path = provider === 'openai' ? '/models' : '/v1/models?limit=1000'
    const { data } = await call('list the models', path, { reply: Models, hints: { 404: wrongAddress(context) } })
    const known = data.some(({ id }) => id === model)
    const text = `${baseOf(context)}: ${known ? `has the model ${model}` : `its list does not name the model ${model}`}`
    return { who: null, missing: [], text }
  },
  actions: {
    complete: {
      direction: 'source',
      description: 'Asks the model once, and writes its reply to a file.',
      effect: 'read',
      example: { name: 'summary.md', prompt: 'Summarize this report.', file: 'files/report/report.md' },
      entry: Entry,
      data: Replied,
      run: complete,
    },
  },
})

async function complete(entry: Entry, context: Context): Promise<AgentResult> {
  const { file, files = [], name } = entry
  const problem = entry.schema && whyNoSchema(entry.schema as JsonObject)
  if (problem) {
    const hint = 'patterns are RE2, and everything that the schema refers to stands in it'
    throw new AgentError(`[${context.callName}] \`schema\`: ${problem}`, { code: 'invalid_request', hint, sent: 'no' })
  }
  const question = {
    ...entry,
    model: entry.model ?? context.settings.model,
    schema: entry.schema as JsonObject | undefined,
    inputs: await inputsOf(context, file === undefined ? files : [file, ...files]),
  }
  const { text, json, requests, ...spent } = await answered(question, context)
  const content = json === undefined ? text : `${JSON.stringify(json, null, 2)}\n`
  const { bytes } = await context.write(name, content)
  return {
    text: `${spent.model}: ${spent.input_tokens ?? '?'} tokens in, ${spent.output_tokens ?? '?'} tokens out`,
    data: { ...spent, requests, ...(bytes <= SHOWN_MOST && (json === undefined ? { text } : { json })) },
  }
}

/** The answer, and its JSON when there is a schema. A reply that does not fit is repaired once. */
async function answered(question: Question, context: Context) {
  const { schema } = question
  const first = await ask(question, context)
  const { model, text } = first
  const spent = { model, input_tokens: first.input_tokens, output_tokens: first.output_tokens }
  if (!schema) return { ...spent, text, json: undefined, requests: 1 }
  const read = readJson(schema, text)
  if ('value' in read) return { ...spent, text, json: read.value, requests: 1 }
  context.log(`the reply does not fit the schema, and is sent back once: ${read.problem}`)
  const second = await ask({ ...question, repair: { reply: text, problem: read.problem } }, context)
  const again = readJson(schema, second.text)
  if ('problem' in again) {
    throw new AgentError(`[${context.callName}] ${model}: the reply does not fit the schema: ${again.problem}`, {
      code: 'invalid_reply',
      hint: 'say in the prompt what each field means, simplify the schema, or use another model',
    })
  }
  return {
    model: second.model,
    input_tokens: sum(first.input_tokens, second.input_tokens),
    output_tokens: sum(first.output_tokens, second.output_tokens),
    text: second.text,
    json: again.value,
    requests: 2,
  }
}

function sum(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other
}

/** Sends one request. Throws when the reply is not complete. */
async function ask(question: Question, context: Context): Promise<Answer> {
  const { provider } = context.settings
  const answer = await (provider === 'openai' ? askOpenai : askAnthropic)(question, context)
  const { model, ended, reason, input_tokens, output_tokens } = answer
  context.log(`${model} answered: ${reason}`, { input_tokens, output_tokens })
  if (ended === 'complete') return answer
  const fail = (code: string, message: string, hint: string) =>
    new AgentError(`[${context.callName}] ${model}: ${message}`, { code, hint })
  if (ended === 'refusal') throw fail('refusal', `the model refused: ${reason}`, 'change the prompt or the files')
  if (ended === 'other') throw fail('unexpected_reply', `the reply ended with ${reason}`, 'change the prompt')
  const limit = question.max_tokens === undefined ? 'the standard limit' : `max_tokens (${question.max_tokens})`
  const said = reason === 'model_context_window_exceeded' ? 'the context window of the model' : limit
  throw fail(
    'limit',
    `the reply reached ${said} after ${output_tokens ?? '?'} tokens`,
    'set a higher `max_tokens`, or ask for less',
  )
}

async function askOpenai(question: Question, context: Context): Promise<Answer> {
  const call = modelApi(context)<Type.Static<typeof OpenaiReply>>
  const body = openaiBody(question, new URL(baseOf(context)).hostname)
  const options = { ...sending(question, context), body, reply: OpenaiReply }
  return openaiAnswer(await call(`ask ${question.model}`, '/chat/completions', options), question.model)
}

async function askAnthropic(question: Question, context: Context): Promise<Answer> {
  const call = modelApi(context)<Type.Static<typeof AnthropicReply>>
  const options = { ...sending(question, context), body: anthropicBody(question), reply: AnthropicReply }
  return anthropicAnswer(await call(`ask ${question.model}`, '/v1/messages', options))
}

function sending({ model }: Question, context: Context) {
  const hints = { 404: `check that the model ${model} exists; ${wrongAddress(context)}` }
  return { method: 'POST', costly: true, timeout: LONGEST, hints }
}

function wrongAddress({ agent }: Context): string {
  return `agents.${agent}.base_url must be the address before /chat/completions or /v1/messages`
}

const modelApi = (context: Context) => jsonApi(context, apiOf(context))

function apiOf(context: Context) {
  const { provider, api_key } = context.settings
  const base = baseOf(context)
  const bearer = api_key ? { authorization: `Bearer ${api_key}` } : {}
  const key = { 'anthropic-version': '2023-06-01', ...(api_key && { 'x-api-key': api_key }) }
  return { setting: 'api_key', base, headers: provider === 'openai' ? bearer : key }
}

/** The address before the vendor's paths. One that was copied together with its path is accepted. */
function baseOf({ settings: { provider, base_url } }: Pick<Context, 'settings'>): string {
  if (provider === 'openai') return (base_url ?? 'https://api.openai.com/v1').replace(/(\/chat\/completions)?\/*$/, '')
  return (base_url ?? 'https://api.anthropic.com').replace(/(\/v1(\/messages)?)?\/*$/, '')
}
