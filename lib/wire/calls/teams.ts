// Teams on the machine of a daemon: they are read with everything that they use, and nothing is started.

import type { Static } from 'typebox'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { HERE, OWNER, READER } from '../access.ts'
import { call, MIB } from '../call.ts'
import { EnvironmentName } from '../names.ts'
import { listBody, longListOf } from '../page.ts'
import { AnyObject, AnyText, Name, Path, Text } from '../parts.ts'
import { Field } from '../records/forms.ts'
import { Plan, Problem } from '../records/plans.ts'
import { RunView } from '../records/run-records.ts'
import { CHANGED, UPTO } from '../team-history.ts'

/** A package by its name, or a folder or file on the daemon's own machine. */
export const WHICH = { team: Type.Optional(Name), path: Type.Optional(Path) }
const Which = closed(WHICH)
export type Which = Static<typeof Which>

/** A folder may be read with texts that nobody has saved yet. */
const DRAFT = {
  ...WHICH,
  files: Type.Optional(
    Type.Record(Type.String(), Text(MIB), {
      description: 'With the `path` of a folder: texts in place of its files, by their names, such as team.yml.',
    }),
  ),
}

/** A file beside team.yml that a phase names. */
const OwnFile = Type.Object({
  place: Type.String({ description: 'Where the phase is: the file, its line and its column.' }),
  phase: AnyText,
  path: Type.String({ description: 'The path as the phase names it.' }),
  folder: Type.String({ description: 'The folder of team.yml, in which the file lies.' }),
  sub_team: Type.Optional(Type.Boolean({ description: 'Whether it is the folder of a team that the top team calls.' })),
})
export type OwnFile = Static<typeof OwnFile>

export const ValidateTeam = call('/v1/teams/validate', {
  summary: 'Check a team',
  daemon: HERE,
  body: closed(DRAFT),
  data: Type.Object({
    name: Type.Optional(AnyText),
    inputs: Type.Array(Field),
    /** The named secrets that it uses, and those of them that cannot be read. */
    secrets: Type.Array(AnyText),
    missing_secrets: Type.Array(Problem),
    /** What is not wrong, and may not be what the author expects. */
    notes: Type.Optional(Type.Array(AnyText)),
    /** A run looks for them in its workspace. */
    own_files: Type.Optional(Type.Array(OwnFile)),
  }),
})
export const PlanTeam = call('/v1/teams/plan', {
  summary: 'What a run would do',
  daemon: HERE,
  body: closed({ ...DRAFT, inputs: Type.Optional(AnyObject), environment: Type.Optional(nullable(EnvironmentName)) }),
  data: Plan,
})
/** Only top runs, as `runs/list` has them. */
export const GetTeamHistory = call('/v1/teams/history', {
  summary: 'The runs of a team, newest first, each with what differs from the last completed run before it',
  daemon: READER,
  body: listBody({ team: Name, upto: UPTO }),
  data: longListOf('runs', Type.Object({ ...RunView.properties, ...CHANGED })),
})

/** How many files one call saves. */
export const MOST_FILES = 100
const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$', 'x-expected': 'a SHA-256 in small hexadecimal letters' })
const hashes = (description: string) => Type.Record(Type.String(), Sha256, { description })
export const GetTeamFiles = call('/v1/teams/files', {
  summary: 'The files of a team that teams/save changes: team.yml and *.test.yml of a folder',
  daemon: OWNER,
  body: closed({ path: Path }),
  data: Type.Object({
    path: Type.String({ description: 'The folder, with its links resolved.' }),
    files: Type.Record(Type.String(), AnyText, { description: 'Their texts by name, as they are on the disk.' }),
    sha256: hashes('Their hashes by name, for `base_sha256` of teams/save.'),
    unread: Type.Array(Problem, { description: 'Those that are no plain files or no texts, and why.' }),
  }),
})
/**
 * The texts replace the files of `path`, a folder, as long as each is still the one with the hash of `base_sha256`, which has
 * a hash for each name; null is for a file that is not there. Otherwise it is a `conflict`, and none of them is changed. A
 * text with mistakes is saved: whether a team is valid depends on other files, agents and packages, too, and no run
 * begins with one that is not. The reply says its mistakes.
 */
export const SaveTeam = call('/v1/teams/save', {
  summary: 'Replace files of a team that have not changed since they were read',
  daemon: OWNER,
  body: closed({
    path: Path,
    files: Type.Record(Type.String(), Text(MIB), {
      minProperties: 1,
      maxProperties: MOST_FILES,
      description: 'The whole texts by name: team.yml, or NAME.test.yml.',
    }),
    base_sha256: Type.Record(Type.String(), nullable(Sha256), {
      description: 'The hash of each file when it was read; null for one that was not there.',
    }),
  }),
  data: Type.Object({
    path: Type.String({ description: 'The folder, with its links resolved.' }),
    sha256: hashes('The hashes of the files that were saved, by name.'),
    problems: Type.Array(Problem, { description: 'The mistakes in them, as teams/validate would say them.' }),
  }),
  limit: 8 * MIB,
})
/** For editors, which cannot send a token. */
export const GetTeamSchema = call('/schema/team.json', {
  summary: 'The JSON Schema of team.yml',
  daemon: HERE,
  query: closed({}),
  media: 'application/schema+json',
})
