// The text of a team in a folder of this machine: it is checked while somebody types, its plan stands beside it, and it is
// saved as long as nobody else has changed the file.

import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Static } from 'typebox'
import { GetTeamFiles, PlanTeam, SaveTeam } from '../../wire/calls/teams.ts'
import type { Plan } from '../../wire/records/plans.ts'
import { ActionButton, type Work } from '../kit/actions.tsx'
import { call, Refusal } from '../kit/api.ts'
import { Select } from '../kit/fields.tsx'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import { PlanBeside } from './plan.tsx'
import { TextEditor } from './text-editor.tsx'

type Files = Static<typeof GetTeamFiles.data>
const TEAM_FILE = 'team.yml'
/** How long nobody types before the draft is checked. */
const TYPED_MS = 250

/** What is typed and not saved, and the file as it was when that began: only over this one may the text be saved. */
interface Draft {
  text: string
  base: string
  sha256: string | null
}

/** Drafts by folder and file. They stay while this tab is open, whatever page it shows. */
const drafts = signal<Record<string, Draft>>({})

function setDraft(key: string, draft: Draft | null): void {
  const { [key]: _, ...others } = drafts.value
  drafts.value = draft === null ? others : { ...others, [key]: draft }
}

const differs = ({ text, base }: Draft): boolean => text !== plain(base)

/** The page `#/edit?path=…`. */
export function EditPage({ path }: { path: string }) {
  const { data, error } = useLoaded(`files ${path}`, () => call(GetTeamFiles, { path }))
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => Object.values(drafts.value).some(differs) && event.preventDefault()
    addEventListener('beforeunload', warn)
    return () => removeEventListener('beforeunload', warn)
  }, [])
  return (
    <main>
      <p class="crumbs">
        <a href={withQuery(to('start'), { team: path })}>Start a run</a>
      </p>
      <header class="top">
        <div>
          <h1>Edit a team</h1>
          <p class="facts quiet small">
            <code class="wrap">{data?.path ?? path}</code>
          </p>
        </div>
      </header>
      <Failure of={error} />
      {data && <Editor of={data} />}
    </main>
  )
}

function Editor({ of }: { of: Files }) {
  const name = useSignal(TEAM_FILE)
  /** The files as this page last read or saved them. */
  const disk = useSignal(of)
  const caret = useRef<HTMLTextAreaElement>(null)
  const { path } = of
  // Another file may be chosen while this one is saved.
  const file = name.value
  const key = `${path}/${file}`
  const there: Draft = {
    text: plain(disk.value.files[file] ?? ''),
    base: disk.value.files[file] ?? '',
    sha256: disk.value.sha256[file] ?? null,
  }
  const kept = drafts.value[key]
  const isDraft = kept !== undefined && differs(kept)
  const draft = isDraft ? kept : there
  const isChanged = draft.sha256 !== there.sha256
  const { plan, mistakes, error } = useChecked(path, file === TEAM_FILE ? draft.text : undefined)
  const names = [...new Set([TEAM_FILE, ...Object.keys(disk.value.files), file])]
  const count = mistakes.length === 1 ? '1 mistake' : `${mistakes.length} mistakes`

  const read = async () => {
    disk.value = await call(GetTeamFiles, { path })
  }
  const saveOver =
    ({ sha256: over }: Draft): Work =>
    async send => {
      const base = withEndsOf(draft.base, draft.text)
      try {
        const saved = await send(SaveTeam, { path, files: { [file]: base }, base_sha256: { [file]: over } })
        const { files, sha256, ...others } = disk.value
        disk.value = { ...others, files: { ...files, [file]: base }, sha256: { ...sha256, ...saved.sha256 } }
        // What was typed while it was saved is a draft of what is saved.
        const later = drafts.value[key]
        if (later) setDraft(key, { text: later.text, base, sha256: saved.sha256[file] ?? null })
      } catch (thrown) {
        if (thrown instanceof Refusal && thrown.code === 'conflict') await read()
        throw thrown
      }
    }
  return (
    <>
      <div class="row filters">
        {names.length > 1 && (
          <Select
            label="File"
            value={file}
            set={chosen => {
              name.value = chosen
            }}
            of={names.map(each => [each, each] as const)}
          />
        )}
        <p class="quiet" role="status">
          {isDraft ? 'Not saved.' : 'As it is on the disk.'} {mistakes.length > 0 && `${count}.`}
        </p>
      </div>
      {disk.value.unread.map(({ path, message }) => (
        <p key={path} class="notice awaiting_input">
          <code>{path}</code> is not shown: it {message}.
        </p>
      ))}
      <div class="beside">
        <div>
          <TextEditor
            label={file}
            value={draft.text}
            bad={new Set(mistakes.map(({ line }) => line))}
            area={caret}
            set={text => setDraft(key, { ...draft, text })}
          />
          <Mistakes of={mistakes} go={(line, column) => jump(caret.current!, line, column)} />
          <Failure of={error} />
          <div class="row">
            {isDraft ? (
              <ActionButton
                key={`${file} ${mistakes.length}`}
                {...(mistakes.length > 0 && {
                  question: `${file} has ${count}. Saved like this, no run of it begins until it is mended, of triggers neither.`,
                  confirm: `Save with ${count}`,
                })}
                plain={false}
                send={saveOver(draft)}
              >
                Save
              </ActionButton>
            ) : (
              <button type="button" disabled>
                Save
              </button>
            )}
            {isDraft && (
              <ActionButton
                question={`Drop what you have typed into ${file}?`}
                confirm="Drop it"
                send={async () => {
                  await read()
                  setDraft(key, null)
                }}
              >
                Drop the changes
              </ActionButton>
            )}
          </div>
          {isChanged && (
            <section class="card" aria-label="What somebody else saved">
              <h2>What somebody else saved</h2>
              <p>Your text is still above, and it is not saved. This is what the disk has instead:</p>
              <pre>{disk.value.files[file] ?? 'There is no such file any more.'}</pre>
              <ActionButton
                question={`Save your text in place of this one? What somebody else wrote into ${file} is lost.`}
                confirm="Save mine"
                send={saveOver(there)}
              >
                Save mine over it
              </ActionButton>
            </section>
          )}
        </div>
        {plan && file === TEAM_FILE && <PlanBeside plan={plan} />}
      </div>
    </>
  )
}

interface Mistake {
  line: number
  column: number
  message: string
}

/** `<file>:<line>:<column>: <words>` */
const PLACE = /^team\.yml:(\d+):(\d+): /

/** The plan of the text, or what is wrong with it. The last plan stays while there are mistakes. */
function useChecked(path: string, text: string | undefined) {
  const plan = useSignal<Plan | null>(null)
  const mistakes = useSignal<readonly Mistake[]>([])
  const error = useSignal<unknown>(null)
  useEffect(() => {
    let isAsked = true
    const check = async () => {
      try {
        const found = text === undefined ? null : await call(PlanTeam, { path, files: { [TEAM_FILE]: text } })
        if (!isAsked) return
        plan.value = found ?? plan.peek()
        mistakes.value = []
        error.value = null
      } catch (thrown) {
        if (!isAsked) return
        const details = thrown instanceof Refusal ? thrown.details : []
        mistakes.value = details.map(({ message }) => {
          const [place, line = '1', column = '1'] = PLACE.exec(message) ?? ['']
          return { line: Number(line), column: Number(column), message: message.slice(place.length) }
        })
        error.value = details.length > 0 ? null : thrown
      }
    }
    const timer = setTimeout(check, plan.peek() ? TYPED_MS : 0)
    return () => {
      isAsked = false
      clearTimeout(timer)
    }
  }, [path, text])
  return { plan: plan.value, mistakes: mistakes.value, error: error.value }
}

function Mistakes({ of, go }: { of: readonly Mistake[]; go(line: number, column: number): void }) {
  if (of.length === 0) return null
  return (
    <ul class="mistakes" aria-label="Mistakes">
      {of.map(({ line, column, message }) => (
        <li key={`${line} ${column} ${message}`}>
          <button type="button" class="plain small" onClick={() => go(line, column)}>
            Line {line}
          </button>{' '}
          {message}
        </li>
      ))}
    </ul>
  )
}

function jump(area: HTMLTextAreaElement, line: number, column: number): void {
  const above = area.value
    .split('\n')
    .slice(0, line - 1)
    .join('\n')
  const at = above.length + (line > 1 ? 1 : 0) + column - 1
  area.focus()
  area.setSelectionRange(at, at)
}

/** The text as a text area has it: with plain ends of lines. */
const plain = (text: string): string => text.replaceAll('\r\n', '\n')

/** The text with ends of lines as the file had them. */
const withEndsOf = (file: string, text: string): string =>
  file.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text
