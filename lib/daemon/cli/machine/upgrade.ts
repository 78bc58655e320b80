// `upgrade` installs a signed release in the place of this program, or verifies the file that npm or bun then installs.
// Without a release it says how this cadre is upgraded, by the way it was installed, and fetches nothing.

import { realpathSync } from 'node:fs'
import { CadreError } from '../../../error.ts'
import { calledAs, quoted } from '../../../program/called-as.ts'
import { installation, ROOT } from '../../../program/install-root.ts'
import { version } from '../../../program/version.ts'
import { line } from '../../../text/printable.ts'
import { print } from '../../../text/terminal.ts'
import { replaceProgram, verifiedNpmFile } from './install-release.ts'

type Way = ReturnType<typeof installation>

interface Steps {
  from: () => string
  steps: () => string[]
  /** Installs the npm file of a release. */
  ofFile?: (file: string) => string
}

/** No registry has cadre, and whoever publishes its name there is somebody else. */
const PACKED = 'rm -f cadre-*.tgz && npm pack     # in a clone of the version that you want'

const WAYS: Readonly<Record<Way, Steps>> = {
  container: {
    from: () => 'in a container',
    steps: () => ['docker compose build --pull && docker compose up --detach'],
  },
  program: {
    from: () => `as the program ${process.execPath}`,
    steps: () => [`${calledAs()} upgrade FILE-OR-ADDRESS-OF-A-RELEASE`],
  },
  repository: {
    from: () => `as a clone of the repository in ${ROOT}`,
    steps: () => [`cd ${ROOT} && git pull && bun install --frozen-lockfile`],
  },
  npm: {
    from: () => `by npm in ${ROOT}`,
    steps: () => [PACKED, 'npm install --global ./cadre-*.tgz'],
    ofFile: file => `npm install --global ${file}`,
  },
  bun: {
    from: () => `by bun in ${ROOT}`,
    steps: () => [PACKED, 'bun add --global ./cadre-*.tgz'],
    ofFile: file => `bun add --global ${file}`,
  },
  npx: { from: () => `by npx in ${ROOT}`, steps: () => [PACKED, 'npm install --global ./cadre-*.tgz'] },
  bunx: { from: () => `by bunx in ${ROOT}`, steps: () => [PACKED, 'bun add --global ./cadre-*.tgz'] },
  project: {
    from: () => `in the project of ${ROOT}`,
    steps: () => [PACKED, 'npm install ./cadre-*.tgz'],
    ofFile: file => `npm install ${file}`,
  },
}

const RESTART = line`Then restart what serves. The next start upgrades its database, and keeps a copy beside it.`

/**
 * @param location the file, folder or address of a release.
 * @param downgrade whether an older version is installed, too.
 */
export async function upgrade(location: string | undefined, downgrade: boolean): Promise<void> {
  const way = installation()
  const { from, steps, ofFile } = WAYS[way]
  if (location === undefined) {
    print(
      line`cadre ${version} is installed ${from()}. To upgrade:`,
      steps().map(step => line`  ${step}`),
      RESTART,
    )
  } else if (way === 'program') {
    const done = await replaceProgram(location, realpathSync(process.execPath), { version, downgrade })
    print(
      line`${done.file} was cadre ${version} and is cadre ${done.version} now, as its publisher signed it.`,
      RESTART,
    )
  } else if (ofFile) {
    const verified = await verifiedNpmFile(location, process.cwd(), { version, downgrade })
    print(
      line`${verified.file} is cadre ${verified.version}, as its publisher signed it. To install it:`,
      line`  ${ofFile(quoted(verified.file))}`,
      RESTART,
    )
  } else {
    throw new CadreError(
      'invalid_state',
      `this cadre is installed ${from()}, where no file of a release takes its place. To upgrade it:\n${steps().join('\n')}`,
    )
  }
}
