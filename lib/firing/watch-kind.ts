// Watches: their occasions are files that come, change or go in a folder, which scans find. Homes only.

import type { JsonObject } from '../json.ts'
import { mayMeet } from '../triggers/watch/match.ts'
import type { WatchedFile } from '../triggers/watch/scan.ts'
import { checkWatch, type WatchSpec, watchWords } from '../triggers/watch/spec.ts'
import { WATCH } from '../wire/records/trigger-fields.ts'
import { OCCASION_VARIABLES } from '../wire/records/trigger-words.ts'
import { given, type Kind, type OwnFields } from './kind.ts'
import { refusal } from './refusal.ts'

const MOST = { home: 100, realm: 0 }
const FIELDS = Object.keys(WATCH)

export const watch: Kind<WatchSpec> = {
  overlap: 'allow',
  variables: OCCASION_VARIABLES.watch,
  fields: FIELDS,
  most: MOST,

  check(fields) {
    const { spec: own, problems } = checkWatch(given(fields, FIELDS))
    return own ? { own } : { problems }
  },

  changed: (own, changes) => ({ ...own, ...given(changes, FIELDS) }),

  isSameRule: (one, other) => Bun.deepEquals(ruleOf(one), ruleOf(other)),

  meets: (one, other) =>
    one.folder.replace(/\/+$/, '') === other.folder.replace(/\/+$/, '') &&
    one.on.some(each => other.on.includes(each)) &&
    one.match.some(pattern => other.match.some(another => mayMeet(pattern, another))),

  words: watchWords,

  shown: ({ spec: { own } }) => ({ ...own, words: watchWords(own) }),

  variablesNow: () => ({ files: [] }),

  startedBy({ id, name }, { id: firing, manual, variables }) {
    const by = manual && { manual }
    return { kind: 'watch', trigger: id, name, firing, files: filesIn(variables), ...by }
  },
}

/** Which files are occasions. */
const ruleOf = ({ settle, batch, poll, claim, initial, ...rule }: WatchSpec) => rule

/** The watch of a body, for a preview. Throws `invalid_request`. */
export function watchOf(body: OwnFields): WatchSpec {
  const { spec, problems } = checkWatch(given(body, FIELDS))
  if (spec) return spec
  throw refusal(problems)
}

/** The files of an occasion, in the variables of its firing. */
export const filesIn = ({ files = [] }: JsonObject): WatchedFile[] => files as WatchedFile[]
