import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type CallResult, testAgent } from 'cadre/testing'
import type { JsonObject } from '../../lib/json.ts'
import { failureOf } from '../support/failure.ts'
import { type FakeCrm, fakeCrm, TOKEN } from '../vendors/crm.ts'

const settings = ({ url }: FakeCrm) => ({ access_token: TOKEN, base_url: url })
const note = { files: { 'n.txt': 'Called back.' }, names: 'add a note to contacts/42' }

const subject = await testAgent({
  file: join(import.meta.dir, '../../agents/crm.ts'),
  vendor: fakeCrm,
  settings,
  examples: {
    get_contact: {
      entry: { name: 'x.json', ref: '42', properties: ['email'], associations: ['deals'] },
      scope: 'crm.objects.contacts.read',
      names: 'get contacts/42',
    },
    get_company: { entry: { name: 'x.json', ref: '7' }, names: 'get companies/7' },
    get_deal: { entry: { name: 'x.json', ref: '5' }, names: 'get deals/5' },
    search: {
      entry: {
        name: 'x.json',
        ref: 'acme',
        object: 'contacts',
        filters: [{ property: 'email', operator: 'HAS_PROPERTY' }],
        limit: 5,
      },
      names: 'search contacts',
    },
    add_note: { entry: { name: 'n', ref: 'contacts/42', file: 'n.txt' }, request: /^POST .*\/notes$/, ...note },
  },
})

let hubspot: FakeCrm
beforeEach(() => {
  hubspot = fakeCrm()
})
afterEach(() => hubspot[Symbol.dispose]())

const run = (action: string, entry: JsonObject, files: Record<string, string> = {}, key?: string) =>
  subject.call(hubspot, action, { name: 'x.json', ...entry }, { files, ...(key && { key }) })
const written = ({ files }: CallResult) => JSON.parse(files['x.json']!)
const bodyOf = (at: number) => hubspot.seen.at(at)!.body

describe('getting', () => {
  test.each([
    ['get_contact', 'kim@acme.test', 'contacts/42', { email: 'kim@acme.test' }],
    ['get_company', 'ACME.test', 'companies/7', { name: 'Acme' }],
  ])('%s by %s', async (action, ref, path, properties) => {
    const result = await run(action, { ref })
    const [, id] = path.split('/')
    expect(result.data).toMatchObject({ id, url: `${hubspot.url}/crm/v3/objects/${path}`, properties })
    expect(written(result)).toMatchObject({ id, archived: false })
  })

  test.each([
    ['get_contact', 'no@acme.test', 'not_found', 'contacts/no@acme.test'],
    ['get_deal', '6', 'not_found', 'deals/6'],
    ['get_company', 'no.test', 'not_found', 'the domain no.test'],
    ['get_company', 'twin.test', 'ambiguous', 'several companies have the domain twin.test'],
  ])('%s %s names what is not there, or is there twice', async (action, ref, code, words) => {
    const error = await failureOf(run(action, { ref }))
    expect(error.code).toBe(code)
    expect(error.message).toContain(words)
  })

  test('all associations, also where the record shows only the first of them', async () => {
    const deals = Array.from({ length: 700 }, (_, at) => String(1_000 + at))
    hubspot.associations.set('contacts/42 companies', ['7'])
    hubspot.associations.set('contacts/42 deals', deals)
    const { data } = await run('get_contact', { ref: '42', associations: ['companies', 'deals'] })
    expect(data).toMatchObject({ associations: { companies: ['7'], deals } })
  })

  test('an id cannot lead to another address', async () => {
    expect((await failureOf(run('get_deal', { ref: '..' }))).code).toBe('invalid_request')
    await failureOf(run('get_deal', { ref: '../contacts/42?a=b' }))
    expect(hubspot.seen.map(({ path }) => path)).toEqual(['/crm/v3/objects/deals/..%2Fcontacts%2F42%3Fa%3Db'])
  })
})

describe('searching', () => {
  test('goes through pages up to the limit', async () => {
    hubspot.objects.tickets = Array.from({ length: 450 }, (_, at) => ({
      id: `${at}`,
      properties: { subject: `Ticket ${at} 🎉` },
    }))
    const all = await run('search', { ref: 'Ticket', object: 'tickets', properties: ['subject'], limit: 10_000 })
    expect(all.data).toMatchObject({ total: 450, truncated: false })
    expect(written(all).items).toHaveLength(450)
    expect(bodyOf(0)).toEqual({ query: 'Ticket', properties: ['subject'], limit: 200 })
    expect(hubspot.seen).toHaveLength(3)
    const some = await run('search', { ref: 'Ticket', object: 'tickets' })
    expect(some).toMatchObject({ text: '100 of 450 tickets', data: { total: 450, truncated: true } })
  })

  test('sends filters as one group of texts', async () => {
    const filters = [
      { property: 'email', operator: 'EQ', value: 'lee@acme.test' },
      { property: 'phone', operator: 'BETWEEN', values: [1, 9] },
      { property: 'firstname', operator: 'IN', values: ['lee', true] },
      { property: 'firstname', operator: 'NOT_IN', value: 'kim' },
    ]
    expect((await run('search', { filters })).data).toMatchObject({ items: [{ id: '43' }], total: 1, truncated: false })
    const sent = [
      { propertyName: 'email', operator: 'EQ', value: 'lee@acme.test' },
      { propertyName: 'phone', operator: 'BETWEEN', value: '1', highValue: '9' },
      { propertyName: 'firstname', operator: 'IN', values: ['lee', 'true'] },
      { propertyName: 'firstname', operator: 'NOT_IN', values: ['kim'] },
    ]
    expect(bodyOf(0)).toEqual({ limit: 100, filterGroups: [{ filters: sent }] })
  })

  test.each([
    ['BETWEEN', { values: [1] }],
    ['IN', {}],
    ['EQ', { values: ['a', 'b'] }],
  ])('%s with %j is refused before anything is sent', async (operator, given) => {
    const entry = { filters: [{ property: 'a', operator, ...given }] }
    expect((await failureOf(run('search', entry))).code).toBe('invalid_request')
    expect(hubspot.seen).toHaveLength(0)
  })

  test('ends when pages repeat themselves, and says that there is more', async () => {
    const page = () =>
      Response.json({ total: 9, results: [{ id: '1', properties: {} }], paging: { next: { after: '1' } } })
    hubspot.fail(/search/, page, { times: 99 })
    expect((await run('search', { ref: 'x' })).data).toMatchObject({ total: 9, truncated: true })
    expect(hubspot.seen).toHaveLength(2)
  })
})

describe('a note', () => {
  const add = (file: string, text: string, ref = 'contacts/42', key?: string) =>
    run('add_note', { ref, file }, { [file]: text }, key)
  const shown = () => hubspot.objects.notes!.map(({ properties }) => properties.hs_note_body!.split('<p>cadre:')[0])

  test.each(['contacts/42', 'companies/7', 'deals/5'])('is added to %s', async ref => {
    const { data, external } = await add('n.txt', 'Called <back>\nat 9.', ref)
    expect(data).toEqual({ id: '500', url: `${hubspot.url}/crm/v3/objects/notes/500` })
    expect(external).toEqual({ id: '500', url: `${hubspot.url}/crm/v3/objects/notes/500` })
    expect(hubspot.associations.get(`${ref} notes`)).toEqual(['500'])
    expect(shown()).toEqual(['Called &lt;back&gt;<br>at 9.'])
  })

  test('is HTML as it is, and Markdown as HTML', async () => {
    await add('n.html', '<b>Called</b>')
    await add('n.md', '**Called** <img onerror=x>\n[bad](javascript:alert(1))\n\n- [x] one')
    expect(shown()).toEqual([
      '<b>Called</b>',
      '<p><strong>Called</strong> &lt;img onerror=x&gt;<br>bad</p><ul><li>☑ one</li></ul>',
    ])
  })

  test('that is too long as HTML is not sent', async () => {
    const error = await failureOf(add('n.txt', '<'.repeat(20_000)))
    expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(error.message).toContain('n.txt has 800')
    expect(hubspot.seen).toEqual([])
  })

  test('for nobody names whom it was for', async () => {
    const error = await failureOf(add('n.txt', 'x', 'contacts/1'))
    expect(error).toMatchObject({ code: 'not_found', sent: 'no' })
    expect(error.message).toContain('add a note to contacts/1')
  })
})

describe('settings as people paste them', () => {
  test('a token with the word before it, and the address of the web application', async () => {
    const pasted = { access_token: `Bearer ${TOKEN}`, base_url: hubspot.url }
    expect(await subject.doctor(hubspot, pasted)).toMatchObject({ who: 'portal 1234', missing: [] })
  })

  test('an API key of old is answered with what to write', async () => {
    expect(await subject.problems({ access_token: 'aabbccdd-1122-3344-5566-77889900aabb' })).toEqual([
      expect.stringContaining('write the access token of a private app, which begins with pat-'),
    ])
  })
})
