// `-V` and `--version` of both programs. The commit is looked for when the option is given only.

import { type Command, CommanderError } from 'commander'
import { line } from '../text/printable.ts'
import { print } from '../text/terminal.ts'
import { versionText } from './version.ts'

/** For a program whose exit is overridden. */
export function addVersion(program: Command): Command {
  return program.option('-V, --version', 'print the version').on('option:version', () => {
    print(line`${versionText()}`)
    throw new CommanderError(0, 'commander.version', versionText())
  })
}
