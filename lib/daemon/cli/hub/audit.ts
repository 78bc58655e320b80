// `audit`, alone: what was done at the hub, by whom and from where. `audit list|export|verify`: what was done on this home,
// or with --hub at the hub. The home’s log is read in its database, whether or not a process holds the home.

import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { auditLines } from '../../../audit/audit-export.ts'
import { jsonLines, verifyAudit } from '../../../audit/audit-verify.ts'
import { CadreError } from '../../../error.ts'
import { line } from '../../../text/printable.ts'
import { print, printJson, printJsonLine } from '../../../text/terminal.ts'
import { ExportAudit, ListAudit } from '../../../wire/calls/hub-audit.ts'
import { readAudit } from '../../home/audit.ts'
import { homeFolder } from '../../home/home.ts'
import { EXIT } from '../kit/exit.ts'
import { hubOf } from '../kit/hub-client.ts'
import { ofOrg } from '../kit/names.ts'
import { list, type PageOptions, pageOf, relative } from './output.ts'

interface Range {
  /** Epoch milliseconds. */
  since?: number
  until?: number
  cursor?: number
}

interface HubOptions extends PageOptions, Range {
  org?: string
  action?: string
}

/** `hub`: its address, or true for the one where the home is enrolled or signed in. */
type Options = Omit<HubOptions, 'hub'> & { hub?: string | true; from?: string }

export async function listAudit(given: Options): Promise<void> {
  const options = atHub(given)
  const client = await hubOf(homeFolder(options.home), options)
  const { action } = options
  const found = await client.call(ListAudit, {
    ...pageOf(options),
    ...rangeOf(options),
    ...(await ofOrg(client, options)),
    ...(action !== undefined && { action }),
  })
  list(options, found, found.audit, (entry, paint) => [
    relative(entry.at),
    entry.username ?? paint.dim('nobody signed in'),
    paint.bold(entry.action),
    entry.target ?? '',
    paint.dim(entry.address ?? ''),
  ])
}

/** The export of a hub, as it comes. */
async function hubExport(given: Options): Promise<ReadableStream<Uint8Array>> {
  const options = atHub(given)
  const client = await hubOf(homeFolder(options.home), options)
  return client.reading(ExportAudit, { ...rangeOf(options), ...(await ofOrg(client, options)) })
}

/** The options without a hub that has no address. */
function atHub({ hub, ...options }: Options): HubOptions {
  return { ...options, ...(typeof hub === 'string' && { hub }) }
}

export async function listHere(options: Options): Promise<void> {
  if (options.hub !== undefined) return listAudit(options)
  refuseOrg(options)
  const here = atHub(options)
  using audit = await readAudit(homeFolder(here.home))
  const found = audit.log.list(here, pageOf(here))
  list(here, found, found.audit, ({ at, actor, action, target }, paint) => [
    relative(at),
    actor,
    paint.bold(action),
    target ?? '',
  ])
}

/** Each line is parsed first, because that of a hub was written by another program. */
export async function exportAudit(options: Options): Promise<void> {
  for await (const entry of await linesOf(undefined, options)) {
    printJsonLine(entry)
    // A slow reader is waited for.
    if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain')
  }
}

/** Returns the exit code: 0 when the chains are whole. */
export async function verify(file: string | undefined, options: Options): Promise<number> {
  const { whole, report, chains } = await verifyAudit(await linesOf(file, options), {
    ...(options.from !== undefined && { from: options.from }),
  })
  if (options.json) printJson({ whole, chains })
  else for (const each of report) print(line`${each}`)
  return whole ? EXIT.done : EXIT.failed
}

async function linesOf(file: string | undefined, options: Options): Promise<AsyncIterable<unknown>> {
  if (file !== undefined) return jsonLines(file === '-' ? process.stdin : opened(file))
  return options.hub === undefined ? ofHome(options) : jsonLines(await hubExport(options))
}

async function* opened(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new CadreError('not_found', `${file} cannot be read (${code}): give a file that audit export made`, { cause })
  }
}

async function* ofHome(options: Options): AsyncGenerator<unknown> {
  refuseOrg(options)
  using audit = await readAudit(homeFolder(options.home))
  yield* auditLines(audit.log.source, rangeOf(options))
}

/** What was given of it. */
function rangeOf({ since, until, cursor }: Range): Range {
  return {
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(cursor !== undefined && { cursor }),
  }
}

function refuseOrg({ org }: Options): void {
  if (org === undefined) return
  throw new CadreError('invalid_request', '--org is about the audit log of a hub: add --hub')
}
