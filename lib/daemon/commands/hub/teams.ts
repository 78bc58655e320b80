// `teams`: the packages that are published at a hub.

import { commandLine } from '../../../called-as.ts'
import { isObject } from '../../../json.ts'
import { sizeText } from '../../../size.ts'
import { GetPackage, ListPackages, ListVersions, YankPackage } from '../../../wire/hub-admin-calls.ts'
import { homeFolder } from '../../home.ts'
import { hubOf } from '../hub-client.ts'
import { confirmed, done, list, type Options, type PageOptions, pageOf, record, relative } from './output.ts'

interface Filter {
  scope?: string
  search?: string
}

/** Each team with its newest version. */
export async function listTeams(options: PageOptions & Filter): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const { scope, search } = options
  const found = await client.call(ListPackages, {
    ...pageOf(options),
    ...(scope !== undefined && { scope: scope.replace(/^@/, '') }),
    ...(search !== undefined && { query: search }),
  })
  list(options, found, found.teams, ({ name, version, description, published_at }, paint) => [
    paint.bold(name),
    version,
    description,
    paint.dim(relative(published_at)),
  ])
}

/** The versions that are not yanked, newest first. */
export async function listVersions(team: string, options: PageOptions): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const found = await client.call(ListVersions, { team, ...pageOf(options) })
  list(options, found, found.versions, ({ version, bytes, signature, published_at, sha256 }, paint) => [
    paint.bold(version),
    relative(published_at),
    sizeText(bytes),
    signature ? `signed with ${signature.key}` : 'not signed',
    paint.dim(sha256.slice(0, 12)),
  ])
}

/** `team` is a name, or a name with a version or a range of versions. */
export async function showTeam(team: string, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const found = await client.call(GetPackage, { team })
  const { name, version, description, published_at, yanked_at, bytes, sha256, signature } = found
  record(options, found, () => ({
    title: `${name}@${version}`,
    facts: [
      ['about', description],
      ['published', relative(published_at)],
      ...(yanked_at === null ? [] : [['yanked', relative(yanked_at)] as const]),
      ['size', sizeText(bytes)],
      ['sha256', sha256],
      ['signed', signature ? `with ${signature.key}` : 'no'],
    ],
    sections: [
      ['inputs', found.inputs.map(inputRow)],
      ['uses', found.dependencies.map(each => [each])],
    ],
  }))
}

function inputRow(input: unknown): string[] {
  if (!isObject(input)) return []
  const { name, type, required, description } = input
  return [
    `${name}`,
    `${type}${required === true ? ', required' : ''}`,
    typeof description === 'string' ? description : '',
  ]
}

/** Hides a version. Runs and teams that are pinned to it still work. */
export async function yankTeam(team: string, options: Options & { yes?: boolean }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  await confirmed(`Hide ${team}? New runs do not find it then, and its version cannot be published again.`, options)
  const gone = await client.call(YankPackage, { team })
  const name = gone.name
  done(options, gone, `hid ${name}@${gone.version}; what is left: ${commandLine('teams', 'versions', name)}`)
}
