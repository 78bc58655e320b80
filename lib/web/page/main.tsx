// The dashboard: its frame, and which page an address shows.

import './style.css'
import './texts.ts'
import { render } from 'preact'
import { Agents } from './agents.tsx'
import { Bar, NoPage } from './frame.tsx'
import { Help, listen } from './keys.tsx'
import { PlanPage } from './plan.tsx'
import { Reviews } from './reviews.tsx'
import { follow, route } from './route.ts'
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
      return <NoPage name={name} />
  }
}

function Frame() {
  return (
    <>
      <Bar links={LINKS} titles={{ plan: 'Plan' }} />
      <Page />
      <Help />
    </>
  )
}

follow()
listen()
render(<Frame />, document.getElementById('page')!)
