// What is required of a package: limited size, names that every daemon can store, and teams that the daemon's own
// validator accepts.

import { CadreError } from '../../error.ts'
import { type AgentLookup, loadBundle, needsOfBundle, type ResolvePackage } from '../../team/team.ts'
import { unseenNotes } from '../../text/unseen.ts'
import {
  inOrder,
  inScope,
  PackagePaths,
  packageDigest,
  problemWithPath,
  TEAM_FILE,
} from '../../wire/records/package-files.ts'
import type { PackageFile } from '../../wire/records/packages.ts'
import type { Candidate, Checked } from './check.ts'
import { reachOf } from './reach.ts'
import { splitReference } from './reference.ts'

const MOST_FILES = 2_000
const MOST_TEAMS = 1_000
const MOST_BYTES = 10 * 1024 * 1024
/** A version becomes the name of a folder on daemons, so its length is limited. */
const LONGEST_VERSION = 100

/**
 * Reads and checks a package. Throws `invalid_request` with every problem, and `too_large` when a limit is exceeded.
 */
export async function checkPackage(
  { files: given, scope }: Candidate,
  { agents, resolve }: { agents: AgentLookup; resolve: ResolvePackage },
): Promise<Checked> {
  const files = decodeFiles(given, scope)
  const bundle = await loadBundle(files, { agents, resolve, closed: true })
  const { name, version, description, inputs, key, environments, triggers } = bundle.team(bundle.root)
  if (name.startsWith('@local/')) {
    throw new CadreError(
      'invalid_request',
      `${name} cannot be published without a scope: put one in its name, or publish with one`,
    )
  }
  if (version.length > LONGEST_VERSION) {
    throw new CadreError('invalid_request', `the version of ${name} is longer than ${LONGEST_VERSION} characters`)
  }
  const stored = inOrder(
    [...files].map(([path, content]) => ({ path, content_base64: Buffer.from(content).toString('base64') })),
  )
  const refs = Object.values(bundle.json().teams).flatMap(({ refs }) => Object.keys(refs))
  return {
    name,
    version,
    description,
    // The copies have the form in which they are stored and passed between threads.
    inputs: JSON.parse(JSON.stringify(inputs)),
    environments,
    triggers: JSON.parse(JSON.stringify(triggers)),
    needs: needsOfBundle(bundle),
    concurrency: key && { key: key.source, limit: key.limit, when_full: key.whenFull },
    files: stored,
    sha256: packageDigest(stored),
    bytes: [...files.values()].reduce((sum, content) => sum + content.length, 0),
    reach: { ...reachOf(bundle, agents), unseen: [...files].flatMap(([path, content]) => unseenNotes(path, content)) },
    dependencies: [...new Set(refs.filter(ref => ref.startsWith('@')).map(ref => splitReference(ref).name))].sort(),
  }
}

/** The files as they will be stored. A long scope makes them larger than what was sent, so that is what is measured. */
function decodeFiles(given: readonly PackageFile[], scope: string | undefined): Map<string, Uint8Array> {
  if (given.length > MOST_FILES) throw new CadreError('too_large', `the package has more than ${MOST_FILES} files`)
  if (given.filter(({ path }) => TEAM_FILE.test(path)).length > MOST_TEAMS) {
    throw new CadreError('too_large', `the package has more than ${MOST_TEAMS} teams`)
  }
  const files = new Map<string, Uint8Array>()
  const paths = new PackagePaths()
  let total = 0
  for (const [index, { path, content_base64 }] of given.entries()) {
    const problem = (field: string, message: string) =>
      new CadreError('invalid_request', `file ${index}, ${JSON.stringify(path)}: ${message}`, {
        details: [{ path: `/files/${index}/${field}`, message }],
      })
    const wrong = problemWithPath(path) ?? paths.add(path)
    if (wrong) throw problem('path', wrong)
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(content_base64)) throw problem('content_base64', 'must be base64')
    const sent = Buffer.from(content_base64, 'base64')
    const content = scope === undefined ? sent : inScope(path, sent, scope)
    total += content.length
    if (total > MOST_BYTES) throw new CadreError('too_large', 'the package is larger than 10 MiB')
    files.set(path, content)
  }
  return files
}
