// What a version of a package does that another did not: what it newly writes, the hosts that it newly reaches, the
// credentials that it newly uses; then its files.

import type { ComponentChildren } from 'preact'
import { diffLines, excerpt } from '../../text/diff.ts'
import { DownloadTeam, GetReach } from '../../wire/calls/packages.ts'
import type { Reach } from '../../wire/records/packages.ts'
import { Table } from '../kit/lists.tsx'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { hub } from './kit/api.ts'

/** Larger texts are not compared line by line. */
const MOST_TEXT = 400_000

export function Comparison({ name, older, newer }: { name: string; older: string; newer: string }) {
  const read = async (version: string) => {
    const team = `${name}@${version}`
    // A version that this hub cannot read any more still has files.
    const [reach, { files }] = await Promise.all([
      hub(GetReach, { team }).catch(() => null),
      hub(DownloadTeam, { team }),
    ])
    return { reach, files: new Map(files.map(({ path, content_base64 }) => [path, content_base64])) }
  }
  const { data, error } = useLoaded(`${name} ${older} ${newer}`, async () => {
    const [before, after] = await Promise.all([read(older), read(newer)])
    const reach = before.reach && after.reach && reachOf(before.reach, after.reach)
    return { reach, files: filesOf(before.files, after.files) }
  })
  if (!data) return error ? <Failure of={error} /> : <div class="loading" aria-busy="true" />
  const { reach, files } = data
  return (
    <>
      <section class="card" aria-label="New in what it does">
        <h3>
          {newer}, compared with {older}
        </h3>
        {reach === null ? (
          <p class="quiet">This hub cannot read one of them, because an agent that it names is missing here.</p>
        ) : reach.every(({ added, removed }) => added.length + removed.length === 0) ? (
          <p class="quiet">It writes to the same places, reaches the same hosts, and uses the same credentials.</p>
        ) : (
          <Table head={['', 'New', 'No longer']}>
            {reach.map(({ title, added, removed }) => (
              <tr key={title}>
                <th scope="row">{title}</th>
                <td>
                  <ChangedNames of={added} kind="new" />
                </td>
                <td>
                  <ChangedNames of={removed} kind="old" />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </section>
      {files.length === 0 && <p class="quiet">The files are the same.</p>}
      {files.map(file => (
        <FileChange key={file.path} file={file} />
      ))}
    </>
  )
}

function ChangedNames({ of, kind }: { of: readonly string[]; kind: 'new' | 'old' }) {
  if (of.length === 0) return <span class="quiet">–</span>
  return (
    <ul class="plain">
      {of.map(each => (
        <li key={each} class={`wrap change ${kind}`}>
          <span aria-hidden="true">{kind === 'new' ? '+' : '−'}</span> {each}
        </li>
      ))}
    </ul>
  )
}

const WRITES: Record<string, string> = { once: 'once', idempotent: 'may repeat', 'by entry': 'depends on the entry' }

function reachOf(before: Reach, after: Reach) {
  const write = ({ phase, agent, action, to, effect }: Reach['writes'][number]) =>
    `${phase.join(' › ')}: ${agent}${action ? `.${action}` : ''}${to ? ` to ${to}` : ''} (${WRITES[effect] ?? effect})`
  const credentials = ({ writes, secrets, agents }: Reach) => [
    ...new Set([
      ...writes.flatMap(each => each.credentials),
      ...secrets.map(each => `secrets.${each}`),
      ...agents.flatMap(each => each.credentials),
    ]),
  ]
  const compared = (title: string, old: readonly string[], fresh: readonly string[]) => ({
    title,
    added: fresh.filter(each => !old.includes(each)),
    removed: old.filter(each => !fresh.includes(each)),
  })
  return [
    compared('Writes', before.writes.map(write), after.writes.map(write)),
    compared('Commands', before.commands, after.commands),
    compared('Unseen characters', before.unseen ?? [], after.unseen ?? []),
    compared('Hosts', before.hosts, after.hosts),
    compared('Requests in the name of', before.accounts ?? [], after.accounts ?? []),
    compared('Credentials', credentials(before), credentials(after)),
    compared(
      'Agents',
      before.agents.map(({ name }) => name),
      after.agents.map(({ name }) => name),
    ),
  ]
}

interface Changed {
  path: string
  before: string | null
  after: string | null
}

function filesOf(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): Changed[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort()
  return paths
    .map(path => ({ path, before: before.get(path) ?? null, after: after.get(path) ?? null }))
    .filter(file => file.before !== file.after)
}

/** Null for bytes that are not text. */
function textOf(base64: string | null): string | null {
  if (base64 === null) return ''
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(base64), each => each.charCodeAt(0)))
  } catch {
    return null
  }
}

function FileChange({ file: { path, before, after } }: { file: Changed }) {
  const [old, fresh] = [textOf(before), textOf(after)]
  const change = before === null ? 'added' : after === null ? 'removed' : 'changed'
  let content: ComponentChildren = <p class="quiet">The file is not text, or it is too long to compare.</p>
  if (old !== null && fresh !== null && old.length + fresh.length < MOST_TEXT) {
    content = (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
      <pre class="diff" tabIndex={0}>
        {excerpt(diffLines(old, fresh)).map((line, index) =>
          line === null ? (
            <span key={index} class="gap">
              ⋯
            </span>
          ) : (
            <span key={index} class={`change ${line.kind}`}>
              {{ same: '  ', old: '− ', new: '+ ' }[line.kind]}
              {line.text}
            </span>
          ),
        )}
      </pre>
    )
  }
  return (
    <details class="part" open>
      <summary>
        <code>{path}</code> <span class="quiet small">{change}</span>
      </summary>
      {content}
    </details>
  )
}
