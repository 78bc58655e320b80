// The bar above each page, with the links to all of them, and the page for an address that names none.

import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { Empty } from '../kit/parts.tsx'
import { route, to } from '../kit/route.ts'
import { useWaiting } from './reviews.tsx'

/** `titles` are those of pages without a link. */
export function Bar({
  links,
  titles,
  children,
}: {
  links: Record<string, string>
  titles: Record<string, string>
  children?: ComponentChildren
}) {
  const [here = ''] = route.value.parts
  const waiting = useWaiting().data?.total ?? 0
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${links[here] ?? titles[here] ?? 'cadre'} · cadre`
    // On a narrow screen there is not room for all links, and they scroll.
    document.querySelector('.frame [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [here, waiting])
  return (
    <header class="frame">
      <a class="brand" href={to('runs')}>
        cadre
      </a>
      <nav aria-label="Pages">
        {Object.entries(links).map(([name, title]) => (
          <a key={name} href={to(name)} aria-current={name === here ? 'page' : undefined}>
            {title}
            {name === 'reviews' && waiting > 0 && <span class="count">{waiting}</span>}
          </a>
        ))}
      </nav>
      {children}
    </header>
  )
}

export function NoPage({ name }: { name: string | undefined }) {
  return (
    <main>
      <Empty>
        <p>There is no page {name}.</p>
        <p>
          Go to the <a href={to('runs')}>runs</a>.
        </p>
      </Empty>
    </main>
  )
}
