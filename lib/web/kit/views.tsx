// Saved views: filters under a name, which this browser keeps. The address says what is shown. A view only leads there.

import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { bound, Field, handleSubmit, Select } from './fields.tsx'
import { go, to, withQuery } from './route.ts'

/** The names of the views of a page, each with a query of its address. */
type Saved = Readonly<Record<string, string>>

const keyOf = (page: string) => `cadre-views-${page}`

function read(page: string): Saved {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(keyOf(page)) ?? '{}')
    return Object.fromEntries(Object.entries(found ?? {}).filter(([, query]) => typeof query === 'string'))
  } catch {
    return {}
  }
}

/** The views of a page, whose filters are `chosen`. */
export function Views({ page, chosen }: { page: string; chosen: Readonly<Record<string, string>> }) {
  const saved = useSignal(read(page))
  const isNaming = useSignal(false)
  const name = useSignal('')
  const form = useRef<HTMLFormElement>(null)
  useLayoutEffect(() => form.current?.querySelector('input')?.focus(), [isNaming.value])
  const address = withQuery('', chosen)
  const query = address.slice(1)
  const names = Object.keys(saved.value).sort()
  const shown = names.find(each => saved.value[each] === query) ?? ''

  function keep(views: Saved): void {
    saved.value = views
    if (Object.keys(views).length > 0) localStorage.setItem(keyOf(page), JSON.stringify(views))
    else localStorage.removeItem(keyOf(page))
  }
  // Another tab may have saved one in between.
  const save = () => {
    keep({ ...read(page), [name.value.trim()]: query })
    isNaming.value = false
    name.value = ''
  }
  const remove = () => {
    const { [shown]: _, ...others } = read(page)
    keep(others)
  }

  if (isNaming.value) {
    return (
      <form class="row views" onSubmit={handleSubmit(save)} ref={form}>
        <Field label="Name of the view" {...bound(name)} required maxLength={60} />
        <button type="submit">Save</button>
        <button
          type="button"
          class="plain"
          onClick={() => {
            isNaming.value = false
          }}
        >
          Cancel
        </button>
      </form>
    )
  }
  return (
    <div class="row views">
      {names.length > 0 && (
        <Select
          label="View"
          value={shown}
          set={chosen => go(withQuery(to(page), Object.fromEntries(new URLSearchParams(saved.value[chosen] ?? ''))))}
          of={[['', 'none'], ...names.map(each => [each, each] as const)]}
        />
      )}
      {query !== '' && shown === '' && (
        <button
          type="button"
          class="plain"
          onClick={() => {
            isNaming.value = true
          }}
        >
          Save view
        </button>
      )}
      {shown !== '' && (
        <button type="button" class="plain" onClick={remove}>
          Delete view
        </button>
      )}
    </div>
  )
}
