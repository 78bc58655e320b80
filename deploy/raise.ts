// `bun run release raise major|minor|patch|VERSION`: gives the next release its number, in package.json and as a heading of
// CHANGELOG.md, in a commit with the tag `v<VERSION>`. Everything else has the number from package.json.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isReleaseVersion } from '../lib/program/release.ts'

type Git = (repository: string, words: string[]) => Buffer

const PARTS: readonly string[] = ['major', 'minor', 'patch']

/**
 * Returns the new number. Throws, and has written nothing, when it is not greater or is that of a tag, files of the clone
 * were changed, there is no heading for it, or git does not know who commits.
 */
export function raise(repository: string, to: string, git: Git): string {
  if (git(repository, ['status', '--porcelain']).length > 0) throw new Error('commit or undo what was changed first')
  const manifest = join(repository, 'package.json')
  const text = readFileSync(manifest, 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  const next = nextOf(version, to)
  if (!isReleaseVersion(next) || Bun.semver.order(next, version) <= 0) {
    throw new Error(`expected ${PARTS.join(', ')} or a version greater than ${version}, got ${to}`)
  }
  if (isTag(repository, tagOf(next), git))
    throw new Error(`there is a tag ${tagOf(next)} already: ask for another number`)
  const changes = join(repository, 'CHANGELOG.md')
  const raised = [
    [manifest, replaced(manifest, text, /^( {2}"version": )".*"/m, `$1"${next}"`)],
    [changes, replaced(changes, readFileSync(changes, 'utf8'), /^## Unreleased$/m, `## ${next}`)],
  ] as const
  // Fails where nobody has told git who commits.
  git(repository, ['var', 'GIT_COMMITTER_IDENT'])
  for (const [path, text] of raised) writeFileSync(path, text)
  git(repository, ['commit', '--quiet', '--all', '--message', `Release ${next}`])
  git(repository, ['tag', tagOf(next)])
  return next
}

/** Throws when the number was that of another commit already. */
export function mustBeNew(repository: string, version: string, git: Git): void {
  const commitOf = (name: string) => git(repository, ['rev-parse', '--verify', `${name}^{commit}`]).toString()
  const tag = tagOf(version)
  if (!isTag(repository, tag, git) || commitOf(tag) === commitOf('HEAD')) return
  throw new Error(`${version} is the release of another commit (${tag}): call \`bun run release raise minor\` first`)
}

const isTag = (repository: string, tag: string, git: Git): boolean => git(repository, ['tag', '--list', tag]).length > 0

function replaced(path: string, text: string, line: RegExp, by: string): string {
  if (!line.test(text)) throw new Error(`${path} has no line ${line.source}`)
  return text.replace(line, by)
}

const tagOf = (version: string): string => `v${version}`

function nextOf(version: string, to: string): string {
  const at = PARTS.indexOf(to)
  if (at === -1) return to
  const numbers = version.split('-', 1)[0]!.split('.').map(Number)
  return numbers.map((number, place) => (place < at ? number : place === at ? number + 1 : 0)).join('.')
}
