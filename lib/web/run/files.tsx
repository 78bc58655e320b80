// The files that a run wrote, with previews that cannot run anything: text becomes text, tables become cells, and images
// are drawn from memory. Everything else is a download. Markdown is read by a library that is loaded when it is needed.

import { useSignal } from '@preact/signals'
import { useEffect, useErrorBoundary } from 'preact/hooks'
import { sizeText } from '../../size.ts'
import type { Artifact } from '../../wire/calls/artifacts.ts'
import { ListArtifacts } from '../../wire/calls/artifacts.ts'
import { ActionButton } from '../kit/actions.tsx'
import { call } from '../kit/api.ts'
import { bound, Check } from '../kit/fields.tsx'
import { Empty, Failure, Json, ScrollTable, useLoaded } from '../kit/parts.tsx'
import { route, setQuery } from '../kit/route.ts'
import { save } from '../kit/save.ts'
import type { Detail } from './live.ts'
import { fileOf } from './streams.ts'

/** Larger files are downloads only. */
const MOST_BYTES = 4 * 1_048_576
const MOST_TEXT = 200_000
const MOST_ROWS = 500

const IMAGES: Record<string, string> = {
  gif: 'image/gif',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
}

export function Files({ run }: { run: Detail }) {
  const files = useLoaded(`${run.run_id} ${run.state}`, () => call(ListArtifacts, { run_id: run.run_id }))
  const open = route.value.query.get('path')
  if (files.error) return <Failure of={files.error} />
  if (!files.data) return <div aria-busy="true" />
  if (files.data.artifacts.length === 0) {
    return (
      <Empty>
        <p>This run wrote no files.</p>
        <p>
          A command writes them into <code>$CADRE_OUT</code>.
        </p>
      </Empty>
    )
  }
  return (
    <ul class="files">
      {files.data.artifacts.map(file => (
        <li key={file.path}>
          <button
            type="button"
            class="file"
            aria-expanded={file.path === open}
            onClick={() => setQuery({ path: file.path === open ? '' : file.path })}
          >
            <span class="name">{file.path.replace(/^files\//, '')}</span>
            <span class="quiet small number">{sizeText(file.bytes)}</span>
          </button>
          {file.path === open && <Preview run={run} file={file} />}
        </li>
      ))}
    </ul>
  )
}

function Preview({ run: { run_id }, file }: { run: Detail; file: Artifact }) {
  const seen = useLoaded(`${run_id} ${file.sha256}`, async () => {
    if (file.bytes > MOST_BYTES) return { kind: 'large' as const }
    const bytes = await fileOf(run_id, file.path)
    const extension = file.name.split('.').at(-1)!.toLowerCase()
    const type = IMAGES[extension]
    if (type) return { kind: 'image' as const, bytes: bytes.slice(0, bytes.size, type) }
    const text = await bytes.text()
    return { kind: text.includes('\0') ? ('binary' as const) : ('text' as const), text, extension }
  })
  return (
    <div class="opened">
      <h2 class="unseen">{file.name}</h2>
      <Failure of={seen.error} />
      {seen.data?.kind === 'image' && <Image bytes={seen.data.bytes} name={file.name} />}
      {seen.data?.kind === 'text' && <Shown text={seen.data.text} extension={seen.data.extension} />}
      {seen.data?.kind === 'binary' && <p class="quiet">There is no preview of this kind of file.</p>}
      {seen.data?.kind === 'large' && <p class="quiet">The file is too large for a preview.</p>}
      <div class="row">
        <ActionButton plain send={async () => save(await fileOf(run_id, file.path), file.name)}>
          Download
        </ActionButton>
        <code class="quiet small wrap" title="SHA-256">
          {file.sha256}
        </code>
      </div>
    </div>
  )
}

function Image({ bytes, name }: { bytes: Blob; name: string }) {
  const url = useSignal<string | undefined>(undefined)
  useEffect(() => {
    const made = URL.createObjectURL(bytes)
    url.value = made
    return () => URL.revokeObjectURL(made)
  }, [bytes])
  return <img src={url.value} alt={name} />
}

const MARKDOWN = new Set(['markdown', 'md'])

/** A text that cannot be drawn must not end the page. */
function Shown(of: { text: string; extension: string }) {
  const [error] = useErrorBoundary()
  return error ? <p class="quiet">This file cannot be shown. The download has everything.</p> : <Text {...of} />
}

function Text({ text, extension }: { text: string; extension: string }) {
  if (MARKDOWN.has(extension) && text.length <= MOST_TEXT) return <Prose text={text} />
  if (extension === 'json') {
    try {
      return <Json of={JSON.parse(text)} />
    } catch {
      // Text that is no JSON is shown below as it is.
    }
  }
  if (extension === 'csv') return <Table rows={rowsOf(text.slice(0, MOST_TEXT))} />
  const cut = text.length > MOST_TEXT
  return (
    <>
      <pre class={MARKDOWN.has(extension) ? 'prose' : ''}>{cut ? text.slice(0, MOST_TEXT) : text}</pre>
      {cut && <p class="quiet">The preview ends here. The download has everything.</p>}
    </>
  )
}

/** Markdown, laid out or as its source. */
function Prose({ text }: { text: string }) {
  const source = useSignal(false)
  const { data, error } = useLoaded('markdown', () => import('../kit/markdown.tsx'))
  if (error) return <pre class="prose">{text}</pre>
  return (
    <>
      <Check {...bound(source)}>Source</Check>
      {source.value || !data ? <pre class="prose">{text}</pre> : <data.Markdown text={text} />}
    </>
  )
}

function Table({ rows: [head = [], ...rows] }: { rows: string[][] }) {
  return (
    <>
      <ScrollTable head={head}>
        {rows.slice(0, MOST_ROWS).map((row, index) => (
          <tr key={index}>
            {row.map((cell, column) => (
              <td key={column}>{cell}</td>
            ))}
          </tr>
        ))}
      </ScrollTable>
      {rows.length > MOST_ROWS && <p class="quiet">{rows.length - MOST_ROWS} more rows are in the download.</p>}
    </>
  )
}

/** The cells of a CSV (RFC 4180). */
function rowsOf(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain ?? '')
    if (end === '') break
    if (end !== ',') rows.push([])
  }
  return rows.filter(row => row.length > 1 || row[0] !== '')
}
