// The dashboard: its frame, and which page an address shows.

import './style.css'
import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import { Agents } from './agents.tsx'
import { Help, listen } from './keys.tsx'
import { Empty } from './parts.tsx'
import { PlanPage } from './plan.tsx'
import { Reviews, useWaiting } from './reviews.tsx'
import { follow, route, to } from './route.ts'
import { Run } from './run.tsx'
import { Runs } from './runs.tsx'
import { Settings } from './settings.tsx'
import { Start } from './start.tsx'
import { Workspaces } from './workspaces.tsx'

const LINKS = {
  runs: 'Runs',
  reviews: 'Reviews',
  start: 'Start',
  agents: 'Agents',
  workspaces: 'Workspaces',
  settings: 'Settings',
}

function Page() {
  const { parts, query } = route.value
  const [name, id] = parts
  switch (name) {
    case 'runs':
      return id === undefined ? <Runs /> : <Run key={id} id={id} />
    case 'reviews':
      return <Reviews />
    case 'start':
      return <Start key={query.get('like')} />
    case 'plan':
      return <PlanPage key={query.toString()} />
    case 'agents':
      return <Agents />
    case 'workspaces':
      return <Workspaces />
    case 'settings':
      return <Settings />
    default:
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
}

function Frame() {
  const [here] = route.value.parts
  const waiting = useWaiting().data?.total ?? 0
  useEffect(() => {
    const title = here === 'plan' ? 'Plan' : (LINKS[here as keyof typeof LINKS] ?? 'cadre')
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${title} · cadre`
  }, [here, waiting])
  // On a narrow screen the links scroll.
  useEffect(() => {
    document.querySelector('.frame [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [here])
  return (
    <>
      <header class="frame">
        <a class="brand" href={to('runs')}>
          cadre
        </a>
        <nav aria-label="Pages">
          {Object.entries(LINKS).map(([name, title]) => (
            <a key={name} href={to(name)} aria-current={name === here ? 'page' : undefined}>
              {title}
              {name === 'reviews' && waiting > 0 && <span class="count">{waiting}</span>}
            </a>
          ))}
        </nav>
      </header>
      <Page />
      <Help />
    </>
  )
}

follow()
listen()
render(<Frame />, document.getElementById('page')!)
