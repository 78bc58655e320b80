// `lsp`: a language server for team.yml, which an editor starts and speaks with over stdin and stdout.

import { calledAs } from '../../../program/called-as.ts'
import { line } from '../../../text/printable.ts'
import { printMessage } from '../../../text/terminal.ts'
import { homeFolder } from '../../home/home.ts'
import { EXIT } from '../kit/exit.ts'

/** Serves until the editor ends it, or goes. Returns an exit code only where no editor can be there. */
export async function lsp({ home }: { home?: string }): Promise<number | undefined> {
  if (process.stdin.isTTY) {
    printMessage(
      line`${calledAs()} lsp is started by an editor, and reads its messages from stdin: see docs/editors.md`,
    )
    return EXIT.usage
  }
  const { serveEditor } = await import('./serve-editor.ts')
  return serveEditor(homeFolder(home))
}
