// `context.vet`: a host is judged before a client of another protocol connects to it, and the answer is the address.

import { describe, expect, test } from 'bun:test'
import { testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'

const nothing = { allow: [], literalOrigins: [] }

/** A context with a resolver that gives these answers one after the other, and the last one from then on. */
function begin(answers: string[][], options: Parameters<typeof testContext>[0] = {}) {
  const asked: string[] = []
  const lookup = async (host: string) => {
    asked.push(host)
    return answers[Math.min(asked.length, answers.length) - 1] ?? []
  }
  return { ...testContext({ network: nothing, lookup, ...options }), asked }
}

describe('a target', () => {
  test.each([
    ['mail.acme.test', 'mail.acme.test', null],
    ['Mail.Acme.test.:25', 'mail.acme.test', 25],
    ['redis://mail.acme.test:6379/0', 'mail.acme.test', 6379],
    ['smtp://mail.acme.test', 'mail.acme.test', null],
  ])('%s is understood', async (target, host, port) => {
    const { context } = begin([['192.0.0.8', '93.184.216.34']], { network: { ...nothing, allow: ['192.0.0.8'] } })
    const addresses = ['192.0.0.8', '93.184.216.34']
    expect(await context.vet(target)).toEqual({ host, port, address: addresses[0]!, addresses })
  })

  test.each([
    ['[2606:4700::1111]:25', '2606:4700::1111', 25],
    ['2606:4700::1111', '2606:4700::1111', null],
    ['93.184.216.34:25', '93.184.216.34', 25],
  ])('%s is a literal address, which nobody is asked for', async (target, host, port) => {
    const { context, asked } = begin([])
    expect(await context.vet(target)).toEqual({ host, port, address: host, addresses: [host] })
    expect(asked).toEqual([])
  })

  test.each(['', ':25', '//', 'mail acme'])('%p names no host', async target => {
    expect(await failureOf(begin([]).context.vet(target))).toMatchObject({ code: 'invalid_url', sent: 'no' })
  })
})

describe('the guard refuses', () => {
  test.each([
    ['127.0.0.1:25', []],
    ['[::1]:25', []],
    ['::ffff:10.0.0.1', []],
    ['inside.acme.test:5432', [['10.1.2.3']]],
    ['half.acme.test', [['93.184.216.34', '192.168.0.1']]],
  ])('%s, which is not public', async (target, answers) => {
    const error = await failureOf(begin(answers).context.vet(target))
    expect(error).toMatchObject({ code: 'refused', sent: 'no' })
    expect(error.message).toContain('settings set network.allow ')
  })

  test.each([['169.254.169.254'], ['metadata.google.internal'], ['trap.acme.test']])(
    'metadata at %s, even when settings name it',
    async host => {
      const at = begin([['169.254.169.254']], { settings: { host }, network: { ...nothing, allow: [host] } })
      expect(await failureOf(at.context.vet(`${host}:80`))).toMatchObject({ code: 'refused' })
    },
  )

  test('a name without an address', async () => {
    expect(await failureOf(begin([[]]).context.vet('none.acme.test'))).toMatchObject({ code: 'dns', sent: 'no' })
  })
})

describe('settings allow the host that they name', () => {
  test.each([
    [{ smtp_host: 'db.acme.test' }, true],
    [{ smtp_host: 'DB.acme.test:5432' }, true],
    [{ databases: [{ url: 'postgres://me@db.acme.test:5432/x' }] }, true],
    [{ smtp_host: 'db.acme.test:25' }, false],
    [{ smtp_host: 'acme.test', note: 'see db.acme.test' }, false],
  ])('%j: %p', async (settings, allowed) => {
    const work = begin([['10.0.0.1']], { settings }).context.vet('db.acme.test:5432')
    if (allowed) expect((await work).address).toBe('10.0.0.1')
    else expect(await failureOf(work)).toMatchObject({ code: 'refused' })
  })
})

test('a second answer of the resolver leads nowhere: the client connects to the address that was judged', async () => {
  const { context, asked } = begin([['93.184.216.34'], ['127.0.0.1']])
  const { address } = await context.vet('rebinds.acme.test')
  expect([address, asked]).toEqual(['93.184.216.34', ['rebinds.acme.test']])
  expect(await failureOf(context.vet('rebinds.acme.test'))).toMatchObject({ code: 'refused' })
})

test('a run that is stopped does not wait for the resolver', async () => {
  const lookup = () => new Promise<string[]>(() => {})
  const { context } = testContext({ lookup, signal: AbortSignal.timeout(10) })
  expect(await failureOf(context.vet('silent.acme.test'))).toMatchObject({ code: 'aborted', sent: 'no' })
})
