// `upgrade` says how this cadre is upgraded, by the way it was installed. It fetches nothing.

import { realpathSync } from 'node:fs'
import { installation, ROOT } from '../../place.ts'
import { version } from '../version.ts'

type Way = ReturnType<typeof installation>

const WAYS: Readonly<Record<Way, { from: () => string; steps: () => string[] }>> = {
  container: {
    from: () => 'in a container',
    steps: () => ['docker compose build --pull && docker compose up --detach'],
  },
  program: {
    from: () => `as the program ${process.execPath}`,
    steps: () => [`install -m 755 PATH-OF-THE-NEW-PROGRAM ${realpathSync(process.execPath)}`],
  },
  repository: {
    from: () => `as a clone of the repository in ${ROOT}`,
    steps: () => [`cd ${ROOT} && git pull && bun install --frozen-lockfile`],
  },
  npm: { from: () => `by npm in ${ROOT}`, steps: () => ['npm install --global cadre@latest'] },
  bun: { from: () => `by bun in ${ROOT}`, steps: () => ['bun add --global cadre@latest'] },
  npx: { from: () => `by npx in ${ROOT}`, steps: () => ['npx cadre@latest --version'] },
  bunx: { from: () => `by bunx in ${ROOT}`, steps: () => ['bunx cadre@latest --version'] },
  project: { from: () => `in the project of ${ROOT}`, steps: () => ['npm install cadre@latest'] },
}

export function upgrade(): void {
  const { from, steps } = WAYS[installation()]
  const lines = [
    `cadre ${version} is installed ${from()}. To upgrade:`,
    ...steps().map(step => `  ${step}`),
    'Then restart what serves. The next start upgrades its database, and keeps a copy beside it.',
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}
