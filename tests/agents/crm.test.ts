import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import crm from '../../agents/crm.ts'
import type { AgentContext, Effect } from '../../lib/agent/define.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { outcomeOf } from '../support/outcome.ts'
import { badDays, failureOf } from '../vendors/bad-days.ts'
import { type FakeCrm, fakeCrm, TOKEN } from '../vendors/crm.ts'

const actions = crm.actions!
const settings = (url: string) => ({ access_token: TOKEN, base_url: url })

let hubspot: FakeCrm
beforeEach(() => {
  hubspot = fakeCrm()
})
afterEach(() => hubspot[Symbol.dispose]())

const begin = (effect: Effect = 'read') =>
  testContext({ agent: 'crm', settings: settings(hubspot.url), network: { allow: [], literalOrigins: [] }, effect })
const run = (action: string, entry: object, at: TestContext) =>
  actions[action]!.run({ name: 'x.json', ...entry }, at.context as AgentContext<never>)
const written = (at: TestContext) => JSON.parse(readFileSync(join(phaseFolder(at), 'x.json'), 'utf8'))
const urlOf = (path: string) => `${hubspot.url}/crm/v3/objects/${path}`
const bodyOf = (at: number) => hubspot.seen.at(at)!.body

badDays({
  open: fakeCrm,
  settings,
  read: context => actions.search!.run({ name: 'out.json', ref: 'acme' }, context),
  request: /^POST \/crm\/v3\/objects\/contacts\/search$/,
  setting: 'agents.crm.access_token',
  scope: 'crm.objects.contacts.read',
  canaries: [TOKEN],
})

describe('getting', () => {
  test.each(['42', 'kim@acme.test'])('the contact %s', async ref => {
    const at = begin()
    const { data } = await run('get_contact', { ref, properties: ['email', 'phone'] }, at)
    expect(data).toEqual({ id: '42', url: urlOf('contacts/42'), properties: { email: 'kim@acme.test', phone: '1' } })
    expect(written(at)).toMatchObject({ id: '42', archived: false })
  })

  test.each(['7', 'acme.test', 'ACME.test'])('the company %s', async ref => {
    const { data } = await run('get_company', { ref }, begin())
    expect(data).toMatchObject({ id: '7', url: urlOf('companies/7'), properties: { name: 'Acme' } })
  })

  test('a deal, with the url that the vendor gives', async () => {
    hubspot.fail(/deals/, () => Response.json({ id: '5', properties: {}, url: 'https://app.hubspot.test/5' }))
    expect((await run('get_deal', { ref: '5' }, begin())).data).toMatchObject({ url: 'https://app.hubspot.test/5' })
  })

  test('what is not there, or is there twice', async () => {
    expect((await failureOf(run('get_deal', { ref: '6' }, begin()))).code).toBe('not_found')
    expect((await failureOf(run('get_contact', { ref: 'no@acme.test' }, begin()))).code).toBe('not_found')
    expect((await failureOf(run('get_company', { ref: 'no.test' }, begin()))).code).toBe('not_found')
    expect((await failureOf(run('get_company', { ref: 'twin.test' }, begin()))).code).toBe('ambiguous')
  })

  test('all associations, also where the record shows the first of them only', async () => {
    const many = Array.from({ length: 700 }, (_, at) => String(1_000 + at))
    hubspot.associations.set('contacts/42 companies', ['7'])
    hubspot.associations.set('contacts/42 deals', many)
    const { data } = await run('get_contact', { ref: '42', associations: ['companies', 'deals'] }, begin())
    expect(data).toMatchObject({ associations: { companies: ['7'], deals: many } })
  })

  test('an id cannot lead to another address', async () => {
    expect((await failureOf(run('get_deal', { ref: '..' }, begin()))).code).toBe('invalid_request')
    expect(hubspot.seen).toHaveLength(0)
    await failureOf(run('get_deal', { ref: '../contacts/42?a=b' }, begin()))
    expect(hubspot.seen[0]!.path).toBe('/crm/v3/objects/deals/..%2Fcontacts%2F42%3Fa%3Db')
  })
})

describe('searching', () => {
  test('goes through pages up to the limit', async () => {
    hubspot.objects.tickets = Array.from({ length: 450 }, (_, at) => {
      return { id: `${at}`, properties: { subject: `Ticket ${at} 🎉`, content: 'x' } }
    })
    const all = begin()
    const { data } = await run(
      'search',
      { ref: 'Ticket', object: 'tickets', properties: ['subject'], limit: 10_000 },
      all,
    )
    expect(data).toMatchObject({ total: 450, truncated: false })
    expect(written(all).items).toHaveLength(450)
    expect(hubspot.seen).toHaveLength(3)
    expect(bodyOf(0)).toEqual({ query: 'Ticket', properties: ['subject'], limit: 200 })
    const some = await run('search', { ref: 'Ticket', object: 'tickets' }, begin())
    const { items, total, truncated } = some.data as { items: unknown[]; total: number; truncated: boolean }
    expect([items.length, total, truncated]).toEqual([100, 450, true])
    expect(items[0]).toEqual({ id: '0', url: urlOf('tickets/0'), properties: { subject: 'Ticket 0 🎉', content: 'x' } })
  })

  test('filters become one group of texts', async () => {
    const filters = [
      { property: 'email', operator: 'EQ', value: 'lee@acme.test' },
      { property: 'phone', operator: 'BETWEEN', values: [1, 9] },
      { property: 'firstname', operator: 'IN', values: ['lee', true] },
      { property: 'phone', operator: 'HAS_PROPERTY' },
    ]
    const { data } = await run('search', { filters }, begin())
    expect(data).toMatchObject({ items: [{ id: '43' }], total: 1, truncated: false })
    expect(bodyOf(0)).toEqual({
      limit: 100,
      filterGroups: [
        {
          filters: [
            { propertyName: 'email', operator: 'EQ', value: 'lee@acme.test' },
            { propertyName: 'phone', operator: 'BETWEEN', value: '1', highValue: '9' },
            { propertyName: 'firstname', operator: 'IN', values: ['lee', 'true'] },
            { propertyName: 'phone', operator: 'HAS_PROPERTY' },
          ],
        },
      ],
    })
  })

  test.each([
    ['BETWEEN', { values: [1] }],
    ['IN', {}],
    ['EQ', { values: ['a', 'b'] }],
  ])('%s with %j is refused before anything is sent', async (operator, given) => {
    const entry = { filters: [{ property: 'a', operator, ...given }] }
    expect((await failureOf(run('search', entry, begin()))).code).toBe('invalid_request')
    expect(hubspot.seen).toHaveLength(0)
  })

  test('in one value is in a list of one', async () => {
    await run('search', { filters: [{ property: 'firstname', operator: 'NOT_IN', value: 'lee' }] }, begin())
    const filters = [{ propertyName: 'firstname', operator: 'NOT_IN', values: ['lee'] }]
    expect(bodyOf(0)).toMatchObject({ filterGroups: [{ filters }] })
  })

  test('what the vendor refuses is said in its words', async () => {
    const filters = [{ property: 'email', operator: 'EQ' }]
    const error = await failureOf(run('search', { filters }, begin()))
    expect(error).toMatchObject({ code: 'rejected', retryable: false })
    expect(error.message).toContain('value')
  })

  test('pages that repeat themselves end, and are not all', async () => {
    const page = () =>
      Response.json({ total: 9, results: [{ id: '1', properties: {} }], paging: { next: { after: '1' } } })
    hubspot.fail(/search/, page, { times: 99 })
    const { data } = await run('search', { ref: 'x' }, begin())
    expect(data).toMatchObject({ total: 9, truncated: true })
    expect(hubspot.seen).toHaveLength(2)
  })
})

describe('a note', () => {
  const note = async (entry: object, at: TestContext, text = 'Called <back>\nat 9.') => {
    writeFileSync(join(at.workspace, 'n.txt'), text)
    writeFileSync(join(at.workspace, 'n.html'), '<b>Called</b>')
    return run('add_note', { ref: 'contacts/42', file: 'n.txt', ...entry }, at)
  }

  test.each(['contacts/42', 'companies/7', 'deals/5'])('is added to %s', async ref => {
    const at = begin('once')
    const { data, external } = await note({ ref }, at)
    expect(data).toEqual({ id: '500', url: urlOf('notes/500') })
    expect(external).toEqual({ id: '500', url: urlOf('notes/500') })
    expect(hubspot.associations.get(`${ref} notes`)).toEqual(['500'])
    const shown = `Called &lt;back&gt;<br>at 9.<p>cadre:${at.context.key}</p>`
    expect(hubspot.objects.notes![0]!.properties.hs_note_body).toBe(shown)
  })

  test('in HTML stays HTML', async () => {
    await note({ file: 'n.html' }, begin('once'))
    expect(hubspot.objects.notes![0]!.properties.hs_note_body).toStartWith('<b>Called</b><p>cadre:')
  })

  test('for nobody, or too long, is not written', async () => {
    expect(await failureOf(note({ ref: 'contacts/1' }, begin('once')))).toMatchObject({ code: 'not_found', sent: 'no' })
    const long = await failureOf(note({}, begin('once'), 'x'.repeat(60_001)))
    expect(long).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(hubspot.objects.notes).toEqual([])
  })

  test('is found among many by its key', async () => {
    const find = (at: TestContext) =>
      actions.add_note!.find!({ name: 'n', ref: 'contacts/42', file: 'n' }, at.context as never)
    const mine = begin('once')
    const others = testContext({ agent: 'crm', settings: settings(hubspot.url), effect: 'once', key: 'another' })
    expect(await find(mine)).toBeNull()
    for (let n = 0; n < 120; n++) await note({}, others)
    expect(await find(mine)).toBeNull()
    await note({}, mine)
    expect((await find(mine))!.data).toMatchObject({ id: '620' })
  })

  test.each([
    ['was written', true],
    ['was not written', false],
  ])('whose reply is lost and that %s is there once in the end', async (_, done) => {
    hubspot.fail(/^POST .*\/notes$/, () => refusal(502), { done })
    const phase = await outcomeOf({
      agent: crm,
      name: 'crm',
      settings: settings(hubspot.url),
      files: { 'n.txt': 'Called back.' },
      phase: {
        action: 'add_note',
        retry: { attempts: 3, backoff: '1ms' },
        target_entries: [{ name: 'note', ref: 'contacts/42', file: 'n.txt' }],
      },
    })
    expect(phase).toMatchObject({ state: 'completed', data: { id: '500', url: urlOf('notes/500') } })
    expect(hubspot.objects.notes).toHaveLength(1)
  })
})
