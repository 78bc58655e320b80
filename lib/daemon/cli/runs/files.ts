// `files RUN` lists the files that the phases of a run wrote; `files RUN get PATH` copies one to stdout.

import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { CadreError } from '../../../error.ts'
import { sizeText } from '../../../size.ts'
import { streamOf } from '../../../stream.ts'
import { lines } from '../../../text/printable.ts'
import { print } from '../../../text/terminal.ts'
import { GetPhases } from '../../../wire/calls/runs.ts'
import { homeFolder } from '../../home/home.ts'
import { artifactIn, askAboutRuns } from '../backend/run-answers.ts'
import { runIdOf } from '../backend/typed-ids.ts'
import { show } from '../kit/print.ts'

interface Options {
  home?: string
  json?: boolean
  output?: string
}

export async function files(typed: string, verb: string | undefined, path: string | undefined, options: Options) {
  if (verb !== undefined && (verb !== 'get' || path === undefined)) {
    throw new CadreError('invalid_request', 'expected `files RUN`, or `files RUN get PATH`')
  }
  const home = homeFolder(options.home)
  const run_id = await runIdOf(home, typed)
  const { phases } = await askAboutRuns(home, runs => runs.call(GetPhases, { run_id }))
  if (path !== undefined) return copy(home, run_id, path, options.output)
  const found = phases.flatMap(({ name: phase, files }) => files.map(file => ({ phase, ...file })))
  show(options.json, { files: found }, paint =>
    found.map(({ path, bytes, sha256 }) => [path, sizeText(bytes), paint.dim(sha256.slice(0, 12))]),
  )
}

async function copy(home: string, runId: string, path: string, output: string | undefined): Promise<void> {
  const chunks = await artifactIn(home, runId, path.startsWith('files/') ? path : `files/${path}`)
  // A terminal would obey what is in the file.
  if (output === undefined && process.stdout.isTTY) return print(lines(await new Response(streamOf(chunks)).text()))
  const to = output === undefined ? process.stdout : createWriteStream(output)
  await pipeline(chunks, to, { end: output !== undefined })
}
