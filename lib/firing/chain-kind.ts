// Chains: their occasions are the ends of the top runs of another team.

import type { Detail } from '../error.ts'
import type { Json, JsonObject } from '../json.ts'
import type { StartedBy } from '../wire/records/started-by.ts'
import { CHAIN } from '../wire/records/trigger-fields.ts'
import { CHAIN_ENDS, type ChainEnd, OCCASION_VARIABLES } from '../wire/records/trigger-words.ts'
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

export const chain: Kind<ChainSpec> = {
  overlap: 'allow',
  variables: OCCASION_VARIABLES.chain,
  fields: FIELDS,

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

  startedBy({ id, name }, { id: firing, manual, variables }) {
    const run = variables.run as EndedRun | null
    const by = manual && { manual }
    return { kind: 'chain', trigger: id, name, firing, run_id: run?.run_id ?? '', depth: depthOf(run), ...by }
  },
}

const isEnd = (word: string): boolean => CHAIN_ENDS.some(end => end === word)

const specOf = ({ after, on = ['completed'], again = false }: Written & { after: string }): ChainSpec => ({
  ...{ after, on: CHAIN_ENDS.filter(end => on.includes(end)), again },
})

/** A run that a chain starts is one deeper than the run that it follows. */
export const depthOf = (run: Pick<EndedRun, 'started_by'> | null): number =>
  run?.started_by.kind === 'chain' ? run.started_by.depth + 1 : 1

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
