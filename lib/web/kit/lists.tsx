// Lists as tables and cards. They read the server page by page, and the keys `j` and `k` go through their rows.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { useKeys } from './keys.tsx'
import { Empty, Failure, useLoaded } from './parts.tsx'

const PAGE = 100
export const REFRESH_MS = 5_000

interface Listed<T> {
  items: readonly T[] | null
  total: number
  error: unknown
  again(): void
  more(): void
}

/** The first items of a list, and with `more()` the next. `ask` reads one page; a reply without a total has all items. */
export function useList<T>(
  key: string,
  ask: (page: {
    limit: number
    offset: number
  }) => Promise<{ total?: number } & { [K in string]?: T[] | number | boolean }>,
  every = REFRESH_MS,
): Listed<T> {
  const pages = useSignal(1)
  const found = useLoaded(
    key,
    async () => {
      const items: T[] = []
      let total = 0
      // When items are large, a reply has fewer of them than the limit.
      while (items.length < pages.value * PAGE) {
        const offset = items.length
        const reply = await ask({ limit: Math.min(PAGE, pages.value * PAGE - offset), offset })
        for (const value of Object.values(reply)) if (Array.isArray(value)) items.push(...value)
        total = reply.total ?? items.length
        if (items.length >= total || items.length === offset) break
      }
      return { items, total }
    },
    every,
  )
  return {
    items: found.data?.items ?? null,
    total: found.data?.total ?? 0,
    error: found.error,
    again: found.again,
    more: () => {
      pages.value++
      // Under the same key, the items that are shown stay until there are more.
      found.again()
    },
  }
}

/** A list, or `none` where it is empty, with a button for the next page. */
export function List<T>({
  of,
  none,
  children,
}: {
  of: Listed<T>
  none: ComponentChildren
  children: (items: readonly T[]) => ComponentChildren
}) {
  if (!of.items) return of.error ? <Failure of={of.error} /> : <div class="loading" aria-busy="true" />
  return (
    <>
      <Failure of={of.error} />
      {of.items.length === 0 ? <Empty>{none}</Empty> : children(of.items)}
      {of.items.length < of.total && (
        <p class="row">
          <button type="button" class="plain" onClick={of.more}>
            Show more of {of.total.toLocaleString('en')}
          </button>
        </p>
      )}
    </>
  )
}

/** `j` and `k` go through the rows: to the link or button of each, or to the row itself. */
function useRows(rows: () => Iterable<Element> | undefined): void {
  const move = (by: number) => {
    const all = [...(rows() ?? [])]
    const at = all.findIndex(row => row.contains(document.activeElement))
    const row = all[Math.max(0, Math.min(all.length - 1, at + by))]
    const found = row?.querySelector<HTMLElement>('a, button, summary') ?? row
    if (!(found instanceof HTMLElement)) return
    if (found === row) found.tabIndex = -1
    found.focus()
  }
  useKeys({ j: () => move(1), k: () => move(-1) })
}

export function Cards({ children }: { children: ComponentChildren }) {
  const list = useRef<HTMLUListElement>(null)
  useRows(() => list.current?.children)
  return (
    <ul class="cards" ref={list}>
      {children}
    </ul>
  )
}

/** A table. On a phone each row becomes a block with the titles beside its cells; a matrix scrolls by itself instead. */
export function Table({
  head,
  matrix = false,
  children,
}: {
  head: readonly string[]
  matrix?: boolean
  children: ComponentChildren
}) {
  const body = useRef<HTMLTableSectionElement>(null)
  useRows(() => (matrix ? undefined : body.current?.rows))
  useLayoutEffect(() => {
    for (const row of body.current!.rows) {
      for (const [index, cell] of [...row.cells].entries()) cell.dataset.title = head[index] ?? ''
    }
  })
  return (
    // No landmark: a page may have many tables with the same head.
    <div
      class={`wide ${matrix ? '' : 'stacks'}`}
      role="group"
      aria-label={head.filter(Boolean).join(', ')}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
      tabIndex={0}
    >
      <table>
        <thead>
          <tr>
            {head.map((title, index) =>
              title === '' ? (
                <td key={index} />
              ) : (
                <th key={title} scope="col">
                  {title}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody ref={body}>{children}</tbody>
      </table>
    </div>
  )
}

export interface Column<T> {
  /** The heading of the column; '' for a column of buttons. */
  title: string
  class?: string
  cell(item: T): ComponentChildren
}

/** A list as a table with one row for each item. A column that is `false` is left out. */
export function Rows<T>({
  of,
  none,
  name,
  columns,
}: {
  of: Listed<T>
  none: ComponentChildren
  /** A value that no other item of the list has. */
  name(item: T): string | number
  columns: readonly (Column<T> | false)[]
}) {
  const visible = columns.filter(column => column !== false)
  return (
    <List of={of} none={none}>
      {items => (
        <Table head={visible.map(({ title }) => title)}>
          {items.map(item => (
            <tr key={name(item)}>
              {visible.map(column => (
                <td key={column.title} class={column.class}>
                  {column.cell(item)}
                </td>
              ))}
            </tr>
          ))}
        </Table>
      )}
    </List>
  )
}
