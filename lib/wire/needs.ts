// What a run needs of the daemon that takes it, and what a daemon offers. Labels are names with values, such as
// `gpu=yes`. People write them as a mapping, or as a list in which a name alone has the value `yes`. Agents are written
// as a list, or as a mapping of their names to ranges of versions.

import type { Static } from 'typebox'
import { CadreError } from '../error.ts'
import { matches } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import { shortText } from '../text/short-text.ts'
import { AccountName, AgentName, EnvironmentName, Title, Version, Word } from './names.ts'

const LABEL = '[A-Za-z0-9][A-Za-z0-9_/-]{0,62}'
const VALUE =
  '[^\\s=,\\p{Cc}\\p{Cf}\\p{Default_Ignorable_Code_Point}][^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point},=]{0,199}'
const AGENT = '[a-z][a-z0-9_-]{0,99}(@[A-Za-z0-9_-]{1,100})?'
/** The most labels, or agents, that a run may ask for and a daemon may have. */
const MOST = 100

/** The labels that a daemon has by itself. Settings cannot change them. */
export const OWN_LABELS = ['os', 'arch', 'cadre'] as const

const LabelValue = Type.Union([
  Type.String({ pattern: `^${VALUE}$`, 'x-expected': 'a value without commas and equals signs' }),
  Type.Number(),
  Type.Boolean(),
])
/** Labels as people write them. */
export const WrittenLabels = Type.Union(
  [
    Type.Record(Type.String({ pattern: `^${LABEL}$` }), LabelValue, {
      additionalProperties: false,
      maxProperties: MOST,
    }),
    Type.Array(
      Type.String({ pattern: `^${LABEL}(=${VALUE})?$`, 'x-expected': 'a label such as `gpu` or `region=eu`' }),
      { maxItems: MOST },
    ),
  ],
  {
    examples: [['gpu', 'region=eu']],
    'x-expected': 'a mapping of labels to values, or a list such as [gpu, region=eu]',
    description: 'The labels that the daemon must have.',
  },
)

const WrittenAgents = Type.Union(
  [
    Type.Record(Type.String({ pattern: `^${AGENT}$` }), Type.String({ pattern: '^[\\w .*^~<>=|+-]{1,100}$' }), {
      additionalProperties: false,
      maxProperties: MOST,
    }),
    Type.Array(Type.String({ pattern: `^${AGENT}$`, 'x-expected': 'an agent such as `exec` or `issues@eu`' }), {
      maxItems: MOST,
    }),
  ],
  {
    'x-expected': 'a list of agents, or a mapping of agents to ranges of versions',
    description: 'The agents that must be ready for work on the daemon.',
  },
)

/** `requires` of a team.yml and of dispatch/run. */
export const Requires = Type.Object(
  { labels: Type.Optional(WrittenLabels), agents: Type.Optional(WrittenAgents) },
  { additionalProperties: false, description: 'What the daemon must have that a hub gives the run to.' },
)
export type Requires = Static<typeof Requires>

/** What a run needs of its daemon. A team's own needs are stored with it; a dispatch adds its own. */
export interface Needs {
  /** By name. */
  labels: Record<string, string>
  /** Agents that were asked for by name, with the range of their versions. They must be ready for work. */
  agents: Record<string, string>
  /**
   * Agents that the phases name. The daemon must have them; one on which they are ready is preferred. When there is
   * none, the run goes to any daemon that has them and says there what they lack.
   */
  named: string[]
}

/** Labels by name, from what people wrote. */
export function labelsOf(written: Static<typeof WrittenLabels> = {}): Record<string, string> {
  const pairs = Array.isArray(written)
    ? written.map(label => [label.split('=', 1)[0]!, label.includes('=') ? label.slice(label.indexOf('=') + 1) : 'yes'])
    : Object.entries(written).map(([name, value]) => [name, textOf(value)])
  return Object.fromEntries(pairs)
}

/** YAML reads `true` where people write `true`, and the text `yes` where they write `yes`. */
const textOf = (value: string | number | boolean): string =>
  value === true ? 'yes' : value === false ? 'no' : String(value)

export function needsOf({ labels, agents = {} }: Requires, named: readonly string[] = []): Needs {
  const asked = Array.isArray(agents) ? Object.fromEntries(agents.map(agent => [agent, '*'])) : agents
  return { labels: labelsOf(labels), agents: asked, named: [...new Set(named)].sort() }
}

/** Everything that any of these asks for. Throws `invalid_request` when two ask for different values of one label. */
export function allNeeds(all: readonly Needs[]): Needs {
  const sum: Needs = { labels: {}, agents: {}, named: [] }
  for (const { labels, agents, named } of all) {
    for (const [name, value] of Object.entries(labels)) {
      const other = sum.labels[name] ?? value
      if (other !== value) {
        throw new CadreError(
          'invalid_request',
          `label ${name} is required to be ${other} and to be ${value}, and no daemon can be both`,
          { details: [{ path: `/requires/labels/${name}`, message: `must be ${other}, or be left out` }] },
        )
      }
      sum.labels[name] = value
    }
    for (const [agent, range] of Object.entries(agents)) {
      const other = sum.agents[agent] ?? '*'
      sum.agents[agent] = other === '*' || other === range ? range : range === '*' ? other : `${other} ${range}`
    }
    sum.named = [...new Set([...sum.named, ...named])].sort()
  }
  return sum
}

export const OfferedAgent = Type.Object({
  name: AgentName,
  version: Version,
  /**
   * How far `doctor` got with its settings and, where it can be asked, with the other system: `fine`, `settings`, `wrong`
   * or `unset`. Absent: it has not been asked.
   */
  doctor: Type.Optional(Word),
  /** What it found, in one line. Older daemons do not say. */
  text: Type.Optional(Type.String({ description: 'What `doctor` found, in words for people.' })),
})
export type OfferedAgent = Static<typeof OfferedAgent>

const LabelName = Type.String({ pattern: `^${LABEL}$` })
const LabelText = Type.String({ pattern: `^${VALUE}$` })
const WorkspaceName = Title(200)

/** What a daemon offers to runs, as another program wrote it. */
export interface Offered {
  agents?: readonly unknown[]
  labels?: Readonly<Record<string, unknown>>
  workspaces?: readonly unknown[]
  sandbox?: string
  kinds?: readonly unknown[]
  accounts?: readonly unknown[]
  environments?: readonly unknown[]
  examined?: number
}

/** How much is kept of what a doctor found. */
export const MOST_FOUND = 300

/** What is said of it in the form of names. One that has another form is left out, and the others stay. */
export function offerOf({ agents, labels, workspaces, sandbox, kinds, accounts, environments, examined }: Offered) {
  return {
    ...(agents && { agents: agents.filter(each => matches(OfferedAgent, each)).map(known) }),
    ...(labels && { labels: Object.fromEntries(Object.entries(labels).filter(isLabel)) }),
    ...(workspaces && { workspaces: workspaces.filter(each => matches(WorkspaceName, each)) }),
    ...(sandbox && { sandbox }),
    ...(kinds && { kinds: kinds.filter(each => matches(Word, each)) }),
    ...(accounts && { accounts: accounts.filter(each => matches(AccountName, each)) }),
    ...(environments && { environments: environments.filter(each => matches(EnvironmentName, each)) }),
    ...(examined !== undefined && { examined }),
  }
}

/** Without the properties of newer daemons. */
const known = ({ name, version, doctor, text }: OfferedAgent): OfferedAgent => ({
  name,
  version,
  ...(doctor && { doctor }),
  ...(text && { text: shortText(text, MOST_FOUND) }),
})

const isLabel = (pair: [string, unknown]): pair is [string, string] =>
  matches(LabelName, pair[0]) && matches(LabelText, pair[1])

/** The environments of settings.yml in which a team runs, and the one that its runs have if nobody says. */
export interface Environments {
  allow: readonly string[]
  default: string | null
}
