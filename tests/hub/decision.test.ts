// The pure parts of authorization: grants, the decision, secrets; exhaustively where the space is small.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { decide, roleIn } from '../../lib/hub/access/decision.ts'
import { hashSecret, isSecretForm, mintSecret } from '../../lib/hub/access/token-secrets.ts'
import { type Kind, ROLES } from '../../lib/wire/access.ts'
import {
  allows,
  ENTITIES,
  FULL_GRANT,
  type Grant,
  highestLevel,
  LEVELS,
  reaches,
  within,
} from '../../lib/wire/grants.ts'

describe('grants', () => {
  test('admin implies write implies read, and nothing implies another entity', () => {
    for (const entity of ENTITIES) {
      for (const held of LEVELS) {
        for (const asked of LEVELS) {
          const grant: Grant = { domains: {}, access: { [entity]: [held] } }
          expect(allows(grant, { [entity]: asked })).toBe(LEVELS.indexOf(held) >= LEVELS.indexOf(asked))
          for (const other of ENTITIES) if (other !== entity) expect(allows(grant, { [other]: asked })).toBe(false)
        }
      }
    }
  })
  test('any of several is enough; nothing asked of nothing is nothing', () => {
    expect(allows({ domains: {}, access: { dispatch: ['write'] } }, { runs: 'write', dispatch: 'write' })).toBe(true)
    expect(allows(FULL_GRANT, {})).toBe(false)
    expect(highestLevel({ domains: {}, access: {} })).toBeNull()
    expect(highestLevel({ domains: {}, access: { runs: ['read'], teams: ['read', 'write'] } })).toBe('write')
  })
  test.each([
    [{}, false, false],
    [{ orgs: [1] }, true, true],
    [{ orgs: [2] }, false, false],
    [{ orgs: '*' }, true, true],
    [{ realms: ['r'] }, false, true],
    [{ realms: ['q'] }, false, false],
    [{ realms: '*' }, false, true],
    [{ orgs: [2], realms: ['r'] }, false, true],
  ] as [Grant['domains'], boolean, boolean][])('%j reaches org 1: %p, its realm r: %p', (domains, org, realm) => {
    const grant = { domains, access: {} }
    expect(reaches(grant, { org_id: 1 })).toBe(org)
    expect(reaches(grant, { org_id: 1, realm_id: 'r' })).toBe(realm)
  })

  const orgOf = (realm: string) => ({ r1: 1, r2: 2 })[realm]
  const grants = fc.record({
    domains: fc.record(
      {
        orgs: fc.oneof(fc.constant('*' as const), fc.subarray([1, 2, 3])),
        realms: fc.oneof(fc.constant('*' as const), fc.subarray(['r1', 'r2', 'unknown'])),
      },
      { requiredKeys: [] },
    ),
    access: fc.dictionary(fc.constantFrom(...ENTITIES), fc.subarray([...LEVELS])),
  }) as fc.Arbitrary<Grant>

  test('a grant within another never allows or reaches more', () => {
    fc.assert(
      fc.property(grants, grants, (inner, outer) => {
        if (!within(inner, outer, orgOf)) return
        for (const entity of ENTITIES) {
          for (const level of LEVELS)
            if (allows(inner, { [entity]: level })) expect(allows(outer, { [entity]: level })).toBe(true)
        }
        for (const org_id of [1, 2, 3]) if (reaches(inner, { org_id })) expect(reaches(outer, { org_id })).toBe(true)
        for (const realm_id of ['r1', 'r2']) {
          const target = { org_id: orgOf(realm_id)!, realm_id }
          if (reaches(inner, target)) expect(reaches(outer, target)).toBe(true)
        }
      }),
    )
  })
  test('every grant is within itself and within the full one', () => {
    fc.assert(
      fc.property(grants, grant => {
        // A realm that does not exist is in no list of orgs.
        expect(within(grant, FULL_GRANT, orgOf)).toBe(true)
        expect(within(grant, grant, orgOf)).toBe(true)
      }),
    )
  })
})

describe('the decision', () => {
  const inside: Grant = { domains: { orgs: [1] }, access: {} }
  const outside: Grant = { domains: { orgs: [2] }, access: {} }
  const target = { org_id: 1, realm_id: 'r' }

  test('by kind, need and standing, all of them', () => {
    for (const kind of ['org', 'scope', 'realm'] as const satisfies Kind[]) {
      const roles: readonly string[] = ROLES[kind]
      for (const need of ROLES[kind]) {
        for (const org of [null, ...ROLES.org]) {
          for (const own of kind === 'org' ? [null] : [null, ...ROLES[kind]]) {
            for (const siteAdmin of [false, true]) {
              const standing = { siteAdmin, org, own }
              const leads = org === 'owner' || org === 'admin'
              const role = siteAdmin
                ? roles.at(-1)!
                : kind === 'org'
                  ? org
                  : leads
                    ? roles.at(-1)!
                    : (own ?? (kind === 'scope' && org ? 'org' : null))
              expect(roleIn(kind, standing)).toBe(role as never)
              const expected =
                role === null ? 'hidden' : roles.indexOf(role) >= roles.indexOf(need) ? 'allowed' : 'too_low'
              expect(decide(kind, need as never, inside, target, standing)).toBe(expected)
              // Scopes are no domain of tokens.
              expect(decide(kind, need as never, outside, target, standing)).toBe(
                kind === 'scope' ? expected : 'hidden',
              )
            }
          }
        }
      }
    }
  })
})

describe('secrets', () => {
  test('have a prefix, a body and a checksum, and never come twice', () => {
    const made = Array.from({ length: 500 }, () => mintSecret('user'))
    expect(new Set(made).size).toBe(500)
    for (const secret of made) {
      expect(secret).toMatch(/^cadre_tok_[0-9A-Za-z]{49}$/)
      expect(isSecretForm(secret)).toBe(true)
    }
    expect(mintSecret('realm')).toStartWith('cadre_dt_')
    expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })
  test('one changed character is seen', () => {
    const secret = mintSecret('realm')
    for (let i = 9; i < secret.length; i++) {
      const changed = secret.slice(0, i) + (secret[i] === 'x' ? 'y' : 'x') + secret.slice(i + 1)
      expect(isSecretForm(changed)).toBe(false)
    }
  })
})
