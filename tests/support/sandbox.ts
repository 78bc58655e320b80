// Whether this machine can make the sandboxes that tests need.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from './folder.ts'

/** Without it, tests of sandboxes are skipped: bubblewrap is missing, or the system forbids user namespaces. */
export const hasBubblewrap: boolean =
  process.platform === 'linux' &&
  Bun.which('bwrap') !== null &&
  Bun.spawnSync(['bwrap', '--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', 'true']).exitCode === 0

/** A home whose packages run without a sandbox, because their commands leave marks outside for the test. */
export function openHome(): string {
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), 'packages: { sandbox: none }\n', { mode: 0o600 })
  return home
}
