// The text of a team in a folder of this machine: it is checked while somebody types, its plan stands beside it, and it is
// saved as long as nobody else has changed the file.

import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Static } from 'typebox'
import { GetTeamFiles, PlanTeam, SaveTeam } from '../../wire/calls/teams.ts'
import type { Plan } from '../../wire/records/plans.ts'
import { ActionButton } from '../kit/actions.tsx'
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

/** What is typed and not saved, by folder and file. It stays while this tab is open, whatever page it shows. */
const drafts = signal<Record<string, string>>({})

function setDraft(key: string, text: string | null): void {
  const { [key]: _, ...others } = drafts.value
  drafts.value = text === null ? others : { ...others, [key]: text }
}

/** The page `#/edit?path=…`. */
export function EditPage({ path }: { path: string }) {
  const { data, error, again } = useLoaded(`files ${path}`, () => call(GetTeamFiles, { path }))
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => Object.keys(drafts.value).length > 0 && event.preventDefault()
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
      {data && <Editor of={data} again={again} />}
    </main>
  )
}

function Editor({ of: disk, again }: { of: Files; again(): void }) {
  const name = useSignal(TEAM_FILE)
  /** The files as they were when the text began to differ from them. */
  const base = useSignal(disk)
  const changed = useSignal<Files | null>(null)
  const caret = useRef<HTMLTextAreaElement>(null)
  const key = `${disk.path}/${name.value}`
  const saved = base.value.files[name.value] ?? ''
  const text = drafts.value[key] ?? plain(saved)
  const isDraft = text !== plain(saved)
  const { plan, mistakes, error } = useChecked(base.value.path, name.value === TEAM_FILE ? text : undefined)
  const names = [...new Set([TEAM_FILE, ...Object.keys(base.value.files)])]
  const count = mistakes.length === 1 ? '1 mistake' : `${mistakes.length} mistakes`

  const saveOn = (from: Files) => async (send: Parameters<Parameters<typeof ActionButton>[0]['send']>[0]) => {
    try {
      const { sha256 } = await send(SaveTeam, {
        path: from.path,
        files: { [name.value]: withEndsOf(saved, text) },
        base_sha256: { [name.value]: from.sha256[name.value] ?? null },
      })
      base.value = {
        ...from,
        files: { ...from.files, [name.value]: withEndsOf(saved, text) },
        sha256: { ...from.sha256, ...sha256 },
      }
      changed.value = null
      setDraft(key, null)
    } catch (thrown) {
      if (thrown instanceof Refusal && thrown.code === 'conflict')
        changed.value = await call(GetTeamFiles, { path: from.path })
      throw thrown
    }
  }
  return (
    <>
      <div class="row filters">
        {names.length > 1 && (
          <Select
            label="File"
            value={name.value}
            set={chosen => {
              name.value = chosen
              changed.value = null
            }}
            of={names.map(each => [each, each] as const)}
          />
        )}
        <p class="quiet" role="status">
          {isDraft ? 'Not saved.' : 'As it is on the disk.'} {mistakes.length > 0 && `${count}.`}
        </p>
      </div>
      {base.value.unread.map(({ path, message }) => (
        <p key={path} class="notice awaiting_input">
          <code>{path}</code> is not shown: it {message}.
        </p>
      ))}
      <div class="beside">
        <div>
          <TextEditor
            label={name.value}
            value={text}
            bad={new Set(mistakes.map(({ line }) => line))}
            area={caret}
            set={typed => setDraft(key, typed === plain(saved) ? null : typed)}
          />
          <Mistakes of={mistakes} go={(line, column) => jump(caret.current!, line, column)} />
          <Failure of={error} />
          <div class="row">
            {isDraft ? (
              <ActionButton
                key={mistakes.length}
                {...(mistakes.length > 0 && {
                  question: `${name.value} has ${count}. Saved like this, no run of it begins until it is mended, of triggers neither.`,
                  confirm: `Save with ${count}`,
                })}
                plain={false}
                send={saveOn(base.value)}
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
                question={`Drop what you have typed into ${name.value}?`}
                confirm="Drop it"
                send={async () => {
                  setDraft(key, null)
                  changed.value = null
                  again()
                }}
              >
                Drop the changes
              </ActionButton>
            )}
          </div>
          {changed.value && (
            <section class="card" aria-label="What somebody else saved">
              <h2>What somebody else saved</h2>
              <p>Your text is still above, and it is not saved. This is what the disk has instead:</p>
              <pre>{changed.value.files[name.value] ?? 'There is no such file any more.'}</pre>
              <ActionButton
                question={`Save your text in place of this one? What somebody else wrote into ${name.value} is lost.`}
                confirm="Save mine"
                send={saveOn(changed.value)}
              >
                Save mine over it
              </ActionButton>
            </section>
          )}
        </div>
        {plan && name.value === TEAM_FILE && <PlanBeside plan={plan} />}
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
