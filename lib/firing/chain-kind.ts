// Chains: their occasions are the ends of the top runs of another team.

import { CadreError, type Detail } from '../error.ts'
import type { Json, JsonObject } from '../json.ts'
import type { StartedBy } from '../wire/records/started-by.ts'
import { CHAIN } from '../wire/records/trigger-fields.ts'
import { CHAIN_ENDS, type ChainEnd, OCCASION_VARIABLES } from '../wire/records/trigger-words.ts'
import { familyOf } from './family.ts'
import { given, type Kind } from './kind.ts'

export interface ChainSpec {
  /** `@scope/name`, or the name after any scope. */
  after: string
  on: ChainEnd[]
  /** Whether each attempt of a run that is resumed is an occasion of its own. */
  again: boolean
}

/** The fields of a body. The word `on` has other values for a watch. */
interface Written {
  after?: string
  on?: readonly string[]
  again?: boolean
}

/** The run that ended, as expressions see it. A type, because an interface is not assignable to JSON. */
export type EndedRun = {
  run_id: string
  team: string
  version: string
  state: string
  outputs: JsonObject | null
  error: Json
  started_by: StartedBy
}

const FIELDS = Object.keys(CHAIN)
/** The transaction that ends a run writes a firing for each of them. */
const MOST = { home: 200, realm: 200 }

export const chain: Kind<ChainSpec> = {
  overlap: 'allow',
  variables: OCCASION_VARIABLES.chain,
  fields: FIELDS,
  most: MOST,

  check(fields) {
    const { after, ...more } = fields as Written
    const problems: Detail[] = []
    if (after === undefined) {
      problems.push({ path: '/after', message: 'is required: the team whose runs it follows, such as @acme/build' })
    }
    if (more.on?.some(each => !isEnd(each))) {
      problems.push({ path: '/on', message: `expected some of ${CHAIN_ENDS.join(', ')}` })
    }
    return after === undefined || problems.length > 0 ? { problems } : { own: specOf({ after, ...more }) }
  },

  changed: (own, changes) => ({ ...own, ...given(changes, FIELDS) }),

  isSameRule: (one, other) => Bun.deepEquals(one, other),

  meets: (one, other) =>
    (follows(one, other.after) || follows(other, one.after)) && one.on.some(end => other.on.includes(end)),

  words: own => wordsOf(own),

  shown({ spec: { own } }) {
    return { ...own, words: wordsOf(own) }
  },

  /** It follows no run when a person starts it. */
  variablesNow: () => ({ run: null }),

  startedBy({ id, name }, { id: firing, occasion, manual, variables }) {
    const run = variables.run as EndedRun | null
    const attempt = attemptIn(occasion)
    const more = { ...(attempt !== null && { attempt }), ...(manual && { manual }) }
    return { kind: 'chain', trigger: id, name, firing, run_id: run?.run_id ?? '', depth: depthOf(run), ...more }
  },
}

const isEnd = (word: string): boolean => CHAIN_ENDS.some(end => end === word)

const specOf = ({ after, on = ['completed'], again = false }: Written & { after: string }): ChainSpec => ({
  ...{ after, on: CHAIN_ENDS.filter(end => on.includes(end)), again },
})

/** What names the end of a run. */
export const occasionOf = ({ again }: Pick<ChainSpec, 'again'>, runId: string, attempt: number): string =>
  again ? `${runId}/${attempt}` : runId

/** The attempt that an occasion names, where each of a run counts. */
function attemptIn(occasion: string): number | null {
  const [, attempt] = familyOf({ occasion }).split('/')
  return attempt === undefined ? null : Number(attempt)
}

/** A run that a chain starts is one deeper than the run that it follows. */
export const depthOf = (run: Pick<EndedRun, 'started_by'> | null): number =>
  run?.started_by.kind === 'chain' ? run.started_by.depth + 1 : 1

/** What is said where a person starts a chain, and nothing has ended that it could follow. */
export const nothingEnded = ({ after, on }: Pick<ChainSpec, 'after' | 'on'>): CadreError =>
  new CadreError('invalid_state', `no run of ${after} has ${on.join(' or ')} yet`)

/** Whether a team is the one that a chain follows: by its whole name, or by its name after any scope. */
export const follows = ({ after }: Pick<ChainSpec, 'after'>, team: string): boolean =>
  after === team || after === team.slice(team.indexOf('/') + 1)

/** What the fields of a chain mean, for people. */
export const chainWords = (fields: Written & { after: string }): string => wordsOf(specOf(fields))

const wordsOf = ({ after, on, again }: ChainSpec): string =>
  `after each run of ${after} that has ${new Intl.ListFormat('en', { type: 'disjunction' }).format(on.map(wordOf))}${
    again ? ', and after each attempt of it' : ''
  }`
const wordOf = (end: ChainEnd): string => (end === 'cancelled' ? 'been cancelled' : end)
