// `teams`: the packages that are published at a hub.

import { isObject } from '../../../json.ts'
import { commandLine } from '../../../program/called-as.ts'
import { sizeText } from '../../../size.ts'
import { GetPackage, ListPackages, ListVersions, YankPackage } from '../../../wire/calls/packages.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { changing, listing, showing } from './forms.ts'
import { relative } from './output.ts'

export const ENTRIES: readonly Entry[] = [
  listing('list', 'list teams, each with its newest version', '--scope acme --search report', {
    options: [
      option('--scope <scope>', 'only teams of this scope'),
      option('--search <text>', 'only teams with this text in the name or description'),
    ],
    call: ListPackages,
    where: async (_, { scope, search }) => ({
      ...(scope !== undefined && { scope: scope.replace(/^@/, '') }),
      ...(search !== undefined && { query: search }),
    }),
    rows: 'teams',
    row: ({ name, version, description, published_at }, paint) => [
      paint.bold(name),
      version,
      description,
      paint.dim(relative(published_at)),
    ],
  }),
  listing('versions <team>', 'list the versions of a team, newest first', '@acme/repo-report', {
    call: ListVersions,
    where: async (_hub, _options, team) => ({ team }),
    rows: 'versions',
    row: ({ version, bytes, signature, published_at, sha256 }, paint) => [
      paint.bold(version),
      relative(published_at),
      sizeText(bytes),
      signature ? `signed with ${signature.key}` : 'not signed',
      paint.dim(sha256.slice(0, 12)),
    ],
  }),
  showing('show <team>', 'show a version: inputs, signature, what it uses', '@acme/repo-report@^1.2', {
    find: (hub, team) => hub.call(GetPackage, { team }),
    title: ({ name, version }) => `${name}@${version}`,
    facts: ({ description, published_at, yanked_at, bytes, sha256, signature }) => [
      ['about', description],
      ['published', relative(published_at)],
      ['yanked', yanked_at === null ? '' : relative(yanked_at)],
      ['size', sizeText(bytes)],
      ['sha256', sha256],
      ['signed', signature ? `with ${signature.key}` : 'no'],
    ],
    sections: ({ inputs, dependencies }) => [
      ['inputs', inputs.map(inputRow)],
      ['uses', dependencies.map(each => [each])],
    ],
  }),
  changing(
    'yank <team>',
    'hide a version from new runs; teams that name exactly this version still find it',
    '@acme/repo-report@1.2.0 --yes',
    {
      find: async (_, team) => team,
      question: team => `Hide ${team}? New runs do not find it then, and its version cannot be published again.`,
      call: (hub, team) => hub.call(YankPackage, { team }),
      confirmation: (_, { name, version }) =>
        `hid ${name}@${version}; what is left: ${commandLine('teams', 'versions', name)}`,
    },
  ),
]

function inputRow(input: unknown): string[] {
  if (!isObject(input)) return []
  const { name, type, required, description } = input
  return [
    `${name}`,
    `${type}${required === true ? ', required' : ''}`,
    typeof description === 'string' ? description : '',
  ]
}
