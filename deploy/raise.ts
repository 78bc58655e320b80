// `bun run release raise major|minor|patch|VERSION`: gives the next release its number, in package.json and as a heading of
// CHANGELOG.md, in a commit with the tag `v<VERSION>`. Everything else has the number from package.json.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isReleaseVersion } from '../lib/program/release.ts'

type Git = (repository: string, words: string[]) => Buffer

const PARTS: readonly string[] = ['major', 'minor', 'patch']

/** Returns the new number. Throws when it is not greater, or files of the clone were changed. */
export function raise(repository: string, to: string, git: Git): string {
  if (git(repository, ['status', '--porcelain']).length > 0) throw new Error('commit or undo what was changed first')
  const manifest = join(repository, 'package.json')
  const text = readFileSync(manifest, 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  const next = nextOf(version, to)
  if (!isReleaseVersion(next) || Bun.semver.order(next, version) <= 0) {
    throw new Error(`expected ${PARTS.join(', ')} or a version greater than ${version}, got ${to}`)
  }
  writeFileSync(manifest, text.replace(/^( {2}"version": )".*"/m, `$1"${next}"`))
  const changes = join(repository, 'CHANGELOG.md')
  writeFileSync(changes, readFileSync(changes, 'utf8').replace(/^## Unreleased$/m, `## ${next}`))
  git(repository, ['commit', '--quiet', '--all', '--message', `Release ${next}`])
  git(repository, ['tag', tagOf(next)])
  return next
}

/** Throws when the number was that of another commit already. */
export function mustBeNew(repository: string, version: string, git: Git): void {
  const commitOf = (name: string) => git(repository, ['rev-parse', '--verify', `${name}^{commit}`]).toString()
  const tag = tagOf(version)
  if (git(repository, ['tag', '--list', tag]).length === 0 || commitOf(tag) === commitOf('HEAD')) return
  throw new Error(`${version} is the release of another commit (${tag}): call \`bun run release raise minor\` first`)
}

const tagOf = (version: string): string => `v${version}`

function nextOf(version: string, to: string): string {
  const at = PARTS.indexOf(to)
  if (at === -1) return to
  const numbers = version.split('-', 1)[0]!.split('.').map(Number)
  return numbers.map((number, place) => (place < at ? number : place === at ? number + 1 : 0)).join('.')
}
