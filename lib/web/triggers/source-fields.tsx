// The fields of watches and chains in the form of a trigger: whose occasions they are. And what a watch says, as facts.

import { Area, boundTo, Check, Checks, Field, Select } from '../kit/fields.tsx'
import { useLoaded } from '../kit/parts.tsx'
import type { Texts } from './own-fields.ts'
import type { Place, Shown } from './place.ts'

const WATCHED = [
  ['added', 'comes'],
  ['changed', 'changes'],
  ['removed', 'is removed'],
] as const

export function WatchFields({ texts }: { texts: Texts }) {
  return (
    <>
      <div class="row fields-row">
        <Field label="Folder on this machine" required placeholder="/srv/in, or ~/in" {...boundTo(texts, 'folder')} />
      </div>
      <Area label="Files that count, a pattern on each line" rows={2} class="fields-row" {...boundTo(texts, 'match')} />
      <Ends label="When a file" texts={texts} of={WATCHED} />
    </>
  )
}

/** What few watches need. */
export function WatchOptions({ texts }: { texts: Texts }) {
  return (
    <>
      <Field label="How many levels of folders" placeholder="1: the folder alone" {...boundTo(texts, 'depth')} />
      <Field label="A file has to stay the same for" placeholder="2s" {...boundTo(texts, 'settle')} />
      <Field
        label="One run for all files that come within"
        placeholder="10s; empty: each has its own"
        {...boundTo(texts, 'batch')}
      />
      <Field label="Look at the folder every" placeholder="30s" {...boundTo(texts, 'poll')} />
      <Select
        label="A file has changed when"
        value={texts.value.identity ?? 'stat'}
        set={boundTo(texts, 'identity').set}
        of={[
          ['stat', 'its size or time has'],
          ['sha256', 'its content has'],
        ]}
      />
      <Area label="Files that do not count, a pattern on each line" rows={2} {...boundTo(texts, 'ignore')} />
      <Flag texts={texts} name="initial">
        Files that are there already count
      </Flag>
      <Flag texts={texts} name="claim">
        Move files away before their run begins
      </Flag>
    </>
  )
}

const ENDS = [
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['cancelled', 'was cancelled'],
] as const

export function ChainFields({ texts, place }: { texts: Texts; place: Place }) {
  const teams = useLoaded(`teams that end ${place.realm_id}`, () => place.ran())
  return (
    <>
      <div class="row fields-row">
        <Field
          label="After each run of"
          required
          list="trigger-after"
          placeholder="@acme/build"
          {...boundTo(texts, 'after')}
        >
          <datalist id="trigger-after">
            {(teams.data ?? []).map(each => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </Field>
      </div>
      <Ends label="That" texts={texts} of={ENDS} />
      <Flag texts={texts} name="again">
        Also after each attempt of a run that is resumed
      </Flag>
    </>
  )
}

function Ends({ label, texts, of }: { label: string; texts: Texts; of: readonly (readonly [string, string])[] }) {
  const { value, set } = boundTo(texts, 'on')
  return (
    <div class="fields-row">
      <Checks label={label} value={value.split(',')} set={chosen => set(chosen.join())} of={of} />
    </div>
  )
}

function Flag({ texts, name, children }: { texts: Texts; name: string; children: string }) {
  const { value, set } = boundTo(texts, name)
  return (
    <Check class="wrapping" value={value === 'yes'} set={is => set(is ? 'yes' : '')}>
      {children}
    </Check>
  )
}

/** What a watch says beside its words, for the list of its facts. */
export function watchFacts({ folder, ignore = [], settle, poll, identity, initial, claim }: Shown): [string, string][] {
  if (folder === undefined) return []
  return [
    ['Files that do not count', ignore.join(', ')],
    ['A file has to stay the same for', settle ?? ''],
    ['It looks', `every ${poll}, and when something happens`],
    ['A file has changed when', identity === 'sha256' ? 'its content has' : ''],
    ['Files that were there when it was added', initial ? 'count' : ''],
    ['Files are moved to', claim ? `${folder}/.cadre-claimed before their run begins` : ''],
  ]
}
