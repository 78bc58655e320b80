// A grant as a matrix: entity by level. Admin implies write, and write implies read.

import type { Signal } from '@preact/signals'
import { ENTITIES, type Entity, LEVELS, type Level } from '../../../wire/entities.ts'
import type { Grant } from '../../../wire/grants.ts'
import { Table } from '../../kit/lists.tsx'
import { realmName } from '../kit/realm-choice.tsx'

/** The level of each entity. An entity without a level is denied. */
export type Matrix = Partial<Record<Entity, Level>>

/** What each entity is about, for people who choose. */
const ABOUT: Record<Entity, string> = {
  users: 'accounts of this hub',
  orgs: 'orgs, their members and the audit log',
  scopes: 'scopes of packages and their members',
  teams: 'packages: read, publish, yank',
  tokens: 'your tokens',
  realms: 'realms, members, webhooks',
  daemons: 'daemons: see, approve, remove',
  runs: 'runs, logs, files, reviews',
  dispatch: 'the queue, starting and cancelling',
  triggers: 'what starts runs by itself: see, change',
}

export const fullMatrix = (level: Level): Matrix => Object.fromEntries(ENTITIES.map(each => [each, level]))

export const grantOf = (matrix: Matrix, domains: Grant['domains']): Grant => ({
  domains,
  access: Object.fromEntries(Object.entries(matrix).map(([entity, level]) => [entity, [level]])),
})

function levelOf(grant: Grant, entity: Entity): number {
  return Math.max(-1, ...(grant.access[entity] ?? []).map(each => LEVELS.indexOf(each)))
}

export function GrantMatrix({ of }: { of: Grant }) {
  const { orgs = [], realms = [] } = of.domains
  const domains = [
    orgs === '*' ? 'all orgs' : orgs.length > 0 && `orgs ${orgs.join(', ')}`,
    realms === '*' ? 'all realms' : realms.length > 0 && realms.map(realmName).join(', '),
  ].filter(Boolean)
  return (
    <>
      <p class="small">Reaches {domains.join(' and ') || 'no org and no realm'}.</p>
      <Table matrix head={['Entity', ...LEVELS]}>
        {ENTITIES.map(entity => (
          <tr key={entity} class={levelOf(of, entity) < 0 ? 'quiet' : ''}>
            <th scope="row">{entity}</th>
            {LEVELS.map((level, index) => (
              <td key={level}>
                {levelOf(of, entity) >= index ? (
                  <span class="yes">
                    ✓<span class="unseen"> allowed</span>
                  </span>
                ) : (
                  <span class="quiet">
                    ·<span class="unseen"> denied</span>
                  </span>
                )}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </>
  )
}

export function MatrixForm({ of }: { of: Signal<Matrix> }) {
  const choose = (entity: Entity, level: Level | null) => {
    const { [entity]: _, ...rest } = of.value
    of.value = level === null ? rest : { ...rest, [entity]: level }
  }
  return (
    <>
      <p class="row">
        {LEVELS.map(level => (
          <button
            key={level}
            type="button"
            class="plain"
            onClick={() => {
              of.value = fullMatrix(level)
            }}
          >
            {level} everything
          </button>
        ))}
        <button
          type="button"
          class="plain"
          onClick={() => {
            of.value = {}
          }}
        >
          Nothing
        </button>
      </p>
      <Table matrix head={['Entity', 'none', ...LEVELS]}>
        {ENTITIES.map(entity => (
          <tr key={entity}>
            <th scope="row">
              {entity} <span class="small quiet">{ABOUT[entity]}</span>
            </th>
            {[null, ...LEVELS].map(level => (
              <td key={level}>
                <input
                  type="radio"
                  name={`grant-${entity}`}
                  aria-label={`${entity}: ${level ?? 'none'}`}
                  checked={(of.value[entity] ?? null) === level}
                  onChange={() => choose(entity, level)}
                />
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </>
  )
}
