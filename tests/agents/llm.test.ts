import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { testAgent } from 'cadre/testing'
import { discover } from '../../lib/agent/catalogue.ts'
import { AgentError } from '../../lib/agent/core/agent-error.ts'
import type { JsonObject } from '../../lib/json.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { type CallOptions, Subject } from '../../lib/testing/subject.ts'
import { anthropicBody } from '../../lib/vendors/llm/anthropic.ts'
import { openaiBody } from '../../lib/vendors/llm/openai.ts'
import { inputsOf } from '../../lib/vendors/llm/prompt-files.ts'
import { testContext } from '../support/context.ts'
import { folder } from '../support/folder.ts'
import { type FakeModel, fakeAnthropic, fakeOpenai, KEY, MODEL } from '../vendors/llm.ts'

const file = join(import.meta.dir, '../../agents/llm.ts')
const entry = { name: 'reply.txt', prompt: 'Say hello.' }
const VENDORS = {
  openai: { open: fakeOpenai, base: (url: string) => `${url}/v1`, request: /chat\/completions/, limit: 'length' },
  anthropic: { open: fakeAnthropic, base: (url: string) => url, request: /messages/, limit: 'max_tokens' },
}
const SCHEMA = {
  type: 'object',
  properties: { mood: { type: 'string', enum: ['good', 'bad'] }, score: { type: 'integer', minimum: 0, maximum: 10 } },
  required: ['mood', 'score'],
  additionalProperties: false,
}

describe.each(Object.entries(VENDORS))('%s', async (provider, { open, base, request, limit }) => {
  const settings = ({ url }: FakeModel) => ({ provider, model: MODEL, api_key: KEY, base_url: base(url) })
  const llm = await testAgent({
    file,
    vendor: open,
    settings,
    examples: { complete: { entry, request, names: `ask ${MODEL}` } },
  })
  const ask = (vendor: FakeModel, more: JsonObject = {}, options?: CallOptions) =>
    llm.call(vendor, 'complete', { ...entry, ...more }, options)
  const failure = async (work: Promise<unknown>): Promise<AgentError> => {
    const error = await work.then(
      () => null,
      thrown => thrown,
    )
    expect(error).toBeInstanceOf(AgentError)
    return error
  }
  // biome-ignore lint/suspicious/noExplicitAny: what the agent sent.
  const sent = ({ seen }: FakeModel) => seen.map(({ body }) => body as any)

  test('a reply becomes the file, with its tokens and model in data', async () => {
    using vendor = open()
    vendor.model.says = ['Grüße 🎉\n']
    const { data, files, text } = await ask(vendor, { system: 'Be kind.', max_tokens: 100, temperature: 0.5 })
    expect(files).toEqual({ 'reply.txt': 'Grüße 🎉\n' })
    const counts = { input_tokens: 10, output_tokens: 5, requests: 1 }
    expect(data).toEqual({ model: `${MODEL}-2026`, ...counts, text: 'Grüße 🎉\n' })
    expect(text).toBe(`${MODEL}-2026: 10 tokens in, 5 tokens out`)
    expect(sent(vendor)).toMatchObject([{ model: MODEL, max_tokens: 100, temperature: 0.5 }])
    expect(JSON.stringify(sent(vendor))).toContain('Be kind.')
  })

  test('files are sent with the prompt: texts as text, a PDF as itself', async () => {
    using vendor = open()
    const files = { 'notes.md': '# Notes', 'b.pdf': '%PDF-1.7' }
    const { data } = await ask(vendor, { file: 'notes.md', files: ['b.pdf'] }, { files })
    expect(data).toMatchObject({ requests: 1 })
    const said = JSON.stringify(sent(vendor))
    expect(said).toContain('<file name=\\"notes.md\\">\\n# Notes\\n</file>')
    expect(said).toContain(Buffer.from('%PDF-1.7').toString('base64'))
    expect((await failure(ask(vendor, { file: 'gone' }))).code).toBe('not_found')
    expect(vendor.seen).toHaveLength(1)
  })

  test('a reply at the limit is an error that names the limit', async () => {
    using vendor = open()
    vendor.model.ends = limit
    const given = await failure(ask(vendor, { max_tokens: 5 }))
    expect(given).toMatchObject({ code: 'limit', retryable: false, hint: expect.stringContaining('max_tokens') })
    expect(given.message).toContain('max_tokens (5)')
    expect((await failure(ask(vendor))).message).toContain('the standard limit')
    expect(vendor.seen).toHaveLength(2)
  })

  test('a refusal is an error, and so is an end of another kind', async () => {
    using vendor = open()
    if (provider === 'openai') vendor.model.refuses = 'I will not.'
    else vendor.model.ends = 'refusal'
    const refused = await failure(ask(vendor))
    expect(refused.code).toBe('refusal')
    expect(refused.message).toContain(provider === 'openai' ? 'I will not.' : 'refusal')
    delete vendor.model.refuses
    vendor.model.ends = 'tool_calls'
    expect(await failure(ask(vendor))).toMatchObject({ code: 'unexpected_reply' })
  })

  describe('with a schema', () => {
    const GOOD = '{"mood":"good","score":7}'

    test('the JSON becomes the file, and the vendor is asked for its structured form', async () => {
      using vendor = open()
      vendor.model.says = [GOOD]
      const { data, files } = await ask(vendor, { schema: SCHEMA, name: 'reply.json' })
      expect(data).toMatchObject({ json: { mood: 'good', score: 7 }, requests: 1 })
      expect(JSON.parse(files['reply.json']!)).toEqual({ mood: 'good', score: 7 })
      const [body] = sent(vendor)
      if (provider === 'openai') {
        const json_schema = { name: 'reply', strict: true, schema: SCHEMA }
        expect(body.response_format).toEqual({ type: 'json_schema', json_schema })
      } else {
        const { properties, ...rest } = SCHEMA
        const schema = { ...rest, properties: { ...properties, score: { type: 'integer' } } }
        expect(body.output_config).toEqual({ format: { type: 'json_schema', schema } })
      }
    })

    test('a code block around the JSON is taken off', async () => {
      using vendor = open()
      vendor.model.says = [`\`\`\`json\n${GOOD}\n\`\`\`\n`]
      expect((await ask(vendor, { schema: SCHEMA })).data).toMatchObject({ requests: 1 })
    })

    test('a reply that does not fit is repaired once, and both requests are counted', async () => {
      using vendor = open()
      vendor.model.says = ['{"mood":"good","score":11}', GOOD]
      const { data, lines } = await ask(vendor, { schema: SCHEMA })
      expect(data).toMatchObject({ json: { score: 7 }, requests: 2, input_tokens: 20, output_tokens: 10 })
      const { messages } = sent(vendor)[1]
      expect(messages.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant', 'user'])
      expect(messages[2].content).toContain('/score')
      expect(lines.join('\n')).toContain('/score')
    })

    test('a second reply that does not fit is an error that says what is wrong', async () => {
      using vendor = open()
      vendor.model.says = ['I would rather not write JSON.', '{"mood":"fine"}']
      const error = await failure(ask(vendor, { schema: SCHEMA }))
      expect(error).toMatchObject({ code: 'invalid_reply', retryable: false })
      expect(error.message).toMatch(/\/score is required/)
      expect(vendor.seen).toHaveLength(2)
    })
  })

  test.each([429, 503, 529])('%d is waited out, because nothing was processed', async status => {
    using vendor = open()
    vendor.fail(request, () => refusal(status, '', { 'retry-after': '0' }), { times: 2 })
    expect((await ask(vendor)).data).toMatchObject({ requests: 1 })
    expect(vendor.seen).toHaveLength(3)
  })

  test.each([408, 500, 502, 504])('%d is not asked again, because it may have cost money', async status => {
    using vendor = open()
    vendor.fail(request, () => refusal(status), { times: 9 })
    await failure(ask(vendor))
    expect(vendor.seen).toHaveLength(1)
  })

  test('the key is not sent over http to another machine', async () => {
    using vendor = open()
    const given = { ...settings(vendor), base_url: 'http://models.acme.test/v1' }
    await expect(ask(vendor, {}, { settings: given })).rejects.toThrow('agents.llm.base_url must begin with https://')
    expect(vendor.seen).toHaveLength(0)
  })

  test('an address that was copied with its path, and one that is wrong', async () => {
    using vendor = open()
    const path = provider === 'openai' ? '/v1/chat/completions' : '/v1/messages'
    const copied = { ...settings(vendor), base_url: vendor.url + path }
    expect((await ask(vendor, {}, { settings: copied })).data).toMatchObject({ requests: 1 })
    const wrong = { ...settings(vendor), base_url: `${vendor.url}/api` }
    expect((await failure(ask(vendor, {}, { settings: wrong }))).hint).toContain('agents.llm.base_url')
  })

  test('doctor says whether the model is listed', async () => {
    using vendor = open()
    expect((await llm.doctor(vendor)).text).toContain(`has the model ${MODEL}`)
    const other = { ...settings(vendor), model: 'other' }
    expect((await llm.doctor(vendor, other)).text).toContain('does not name the model other')
  })
})

test('a local server needs no key, and its hosts get the limit under the name that they know', async () => {
  using vendor = fakeOpenai()
  vendor.fail(/POST/, ({ headers, body }) => {
    expect(headers.get('authorization')).toBeNull()
    return Response.json({ choices: [{ message: { content: JSON.stringify(body) } }] })
  })
  const settings = { provider: 'openai', model: 'local', base_url: `${vendor.url}/v1` }
  const subject = await Subject.load(file, () => settings)
  const { data } = await subject.call(vendor, 'complete', { ...entry, max_tokens: 7 })
  expect(data).toMatchObject({ model: 'local', input_tokens: null, output_tokens: null })
  expect(JSON.parse((data as { text: string }).text)).toMatchObject({ max_tokens: 7 })
  subject.removeFolders()
})

test('images are told by their content, and other files are refused', async () => {
  const t = testContext()
  const png = Buffer.from('89504e470d0a1a0a', 'hex')
  await Bun.write(join(t.workspace, 'picture'), png)
  await Bun.write(join(t.workspace, 'data.bin'), Buffer.from('00ff', 'hex'))
  const image = { kind: 'image' as const, name: 'picture', type: 'image/png', content: png.toString('base64') }
  expect(await inputsOf(t.context, ['picture'])).toEqual([image])
  const question = { model: 'm', prompt: 'p', inputs: await inputsOf(t.context, ['picture']) }
  expect(JSON.stringify(openaiBody(question, 'localhost'))).toContain('"url":"data:image/png;base64,')
  expect(JSON.stringify(anthropicBody(question))).toContain('"media_type":"image/png"')
  expect(inputsOf(t.context, ['data.bin'])).rejects.toThrow('data.bin is not a text, an image')
})

test('OpenAI gets the limit under its new name', () => {
  const question = { model: 'm', prompt: 'p', inputs: [], max_tokens: 7 }
  expect(openaiBody(question, 'api.openai.com')).toMatchObject({ max_completion_tokens: 7 })
})

test('the team of docs/write-a-team.md with these agents is valid', async () => {
  const readme = await Bun.file(join(import.meta.dir, '../../docs/write-a-team.md')).text()
  const [, phases] = /This team uses three agents[\s\S]*?```yaml\n([\s\S]*?)```/.exec(readme)!
  const head = 'name: "@local/x"\nversion: 1.0.0\ninputs: [{ name: project, type: string }]\n'
  const catalogue = await discover({ home: folder() })
  const agents = { get: (name: string) => catalogue.get(name), names: () => catalogue.names() }
  expect(await loadBundle(new Map([['team.yml', head + phases]]), { agents })).toBeDefined()
})
