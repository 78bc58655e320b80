// The dashboard: its frame, and which page an address shows.

import './style.css'
import './kit/texts.ts'
import { render } from 'preact'
import { Agents } from './daemon/agents.tsx'
import { Run } from './daemon/run.tsx'
import { Settings } from './daemon/settings.tsx'
import { Start } from './daemon/start.tsx'
import { Workspaces } from './daemon/workspaces.tsx'
import { Help, listen } from './kit/keys.tsx'
import { follow, route } from './kit/route.ts'
import { Bar, NoPage } from './run/frame.tsx'
import { PlanPage } from './run/plan.tsx'
import { Reviews } from './run/reviews.tsx'
import { Runs } from './run/runs.tsx'

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
