// Upgrades a program as `cadre upgrade` does, with a key of the test, in a process that a failpoint can kill.

import { replaceProgram } from '../../lib/daemon/cli/machine/install-release.ts'

const [place, program, target, key] = process.argv.slice(2) as [string, string, string, string]
await replaceProgram(place, program, { target, key, version: '1.0.0', downgrade: false })
