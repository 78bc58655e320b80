// `fmt [FILE…]`: writes team.yml in the one layout, in place; `--check` prints the difference instead.

import { existsSync, statSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { CadreError } from '../../../error.ts'
import { writeDurable } from '../../../files/durable-file.ts'
import { filesBelow } from '../../../files/files-below.ts'
import { pathError } from '../../../files/path-error.ts'
import { formatTeam } from '../../../team/team.ts'
import { diffLines, excerpt } from '../../../text/diff.ts'
import { createPaint, line, type Paint, type Printable } from '../../../text/printable.ts'
import { print, printMessage } from '../../../text/terminal.ts'
import { TEAM_FILE } from '../../../wire/records/package-files.ts'
import { EXIT } from '../kit/exit.ts'

/** One byte more than a team may have, so that a larger file is refused. */
const MOST_BYTES = 1_048_577

/**
 * Formats these files, and every team of these folders. Returns the exit code: with `check`, 1 where something differs. Throws
 * `invalid_request` with every place that cannot be read, and with every file that cannot be written; such a file stays as it
 * is, and the others are formatted.
 */
export async function fmt(paths: readonly string[], { check = false }: { check?: boolean }): Promise<number> {
  const paint = createPaint(process.stdout)
  const refused: CadreError[] = []
  let different = 0
  for (const file of (paths.length > 0 ? paths : ['.']).flatMap(teamFiles)) {
    try {
      const bytes = await bytesOf(file)
      const { before, after } = formatTeam(file, bytes)
      if (before === after) continue
      different++
      if (check) print(differenceOf(file, before, after, paint))
      else {
        await replace(file, bytes, after)
        printMessage(line`formatted ${file}`)
      }
    } catch (thrown) {
      const error = pathError(thrown) ?? thrown
      if (!(error instanceof CadreError) || error.code === 'internal') throw error
      refused.push(error)
    }
  }
  if (refused.length === 1) throw refused[0]!
  if (refused.length > 1) {
    const details = refused.flatMap(({ message, details }) => details ?? [{ path: '', message }])
    throw new CadreError('invalid_request', `${refused.length} files stay as they are`, { details })
  }
  return check && different > 0 ? EXIT.failed : EXIT.done
}

/** A pipe or a device has no end, and is no team. */
async function bytesOf(file: string): Promise<Uint8Array> {
  if (!statSync(file).isFile()) throw new CadreError('invalid_request', `${file} is no file`)
  return Bun.file(file).slice(0, MOST_BYTES).bytes()
}

/** Writes the file behind a link, with the mode that it has. */
export async function replace(file: string, before: Uint8Array, after: string): Promise<void> {
  const real = await realpath(file)
  const { mode } = statSync(real)
  if ((mode & 0o222) === 0) throw new CadreError('conflict', `${file} is read-only, and stays as it is`)
  if (!Buffer.from(await bytesOf(real)).equals(before))
    throw new CadreError('conflict', `${file} was changed meanwhile, and stays as it is: run fmt again`)
  await writeDurable(real, after, mode & 0o777)
}

/** The file, or the files of all teams in a folder and below it. */
function teamFiles(path: string): string[] {
  if (!existsSync(path)) throw new CadreError('invalid_request', `there is no ${path}`)
  if (!statSync(path).isDirectory()) return [path]
  const files = [...filesBelow(path, '')].filter(name => TEAM_FILE.test(name)).map(name => join(path, name))
  if (files.length === 0) throw new CadreError('invalid_request', `${path}: there is no team.yml in it or below it`)
  return files
}

function differenceOf(file: string, before: string, after: string, paint: Paint): Printable[] {
  const rows = excerpt(diffLines(before, after)).map(change => {
    if (change === null) return paint.dim('…')
    const { kind, text } = change
    return kind === 'same'
      ? line`  ${text}`
      : kind === 'old'
        ? paint.red(line`- ${text}`)
        : paint.green(line`+ ${text}`)
  })
  return [paint.bold(file), ...rows]
}
