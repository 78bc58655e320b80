// `cadre …` starts here, from the launcher beside this file and in the compiled program: `cadre hub …` is the command line
// of the hub, and everything else that of the daemon.

import { keepBytecode } from '../lib/program/bytecode.ts'
import { carried } from '../lib/program/carried.ts'
import { PROGRAM_FLAG } from '../lib/program/install-root.ts'

const [word, name] = process.argv.slice(2)
const part = word === PROGRAM_FLAG ? carried?.programs[name!] : undefined

if (part) {
  await part()
} else if (word === 'hub') {
  process.argv.splice(2, 1)
  keepBytecode()
  const { serve } = await import('../hub.ts')
  const { runCommand } = await import('../lib/hub/cli/program.ts')
  await runCommand(serve)
} else {
  await import('../daemon.ts')
}
