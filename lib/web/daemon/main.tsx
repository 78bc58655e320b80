// The dashboard: the table of its pages, and its frame.

import '../kit/style.css'
import '../kit/texts.ts'
import { render } from 'preact'
import { joinTabs } from '../kit/api.ts'
import { Help, listen } from '../kit/keys.tsx'
import { later } from '../kit/later.tsx'
import { follow } from '../kit/route.ts'
import { CurrentPage, keysOf, PageBar, type Pages } from '../run/frame.tsx'
import { Reviews } from '../run/reviews.tsx'
import { Agents } from './agents.tsx'
import { RunPage } from './run.tsx'
import { Runs } from './runs.tsx'
import { Settings } from './settings.tsx'
import { Workspaces } from './workspaces.tsx'

const PlanPage = later('plan', async () => (await import('./plan.tsx')).PlanPage)
const EditPage = later('edit', async () => (await import('./edit.tsx')).EditPage)
const Start = later('start', async () => (await import('./start.tsx')).Start)
const Teams = later('teams', async () => (await import('./teams.tsx')).Teams)
const TriggersPage = later('triggers', async () => (await import('./triggers.tsx')).TriggersPage)

const PAGES: Pages = {
  runs: { title: 'Runs', key: 'r', show: id => (id === undefined ? <Runs /> : <RunPage key={id} id={id} />) },
  reviews: { title: 'Reviews', key: 'v', show: () => <Reviews /> },
  teams: { title: 'Teams', key: 'e', show: () => <Teams /> },
  start: { title: 'Start', key: 'n', show: (_, query) => <Start key={query.get('like')} /> },
  plan: { title: 'Plan', show: (_, query) => <PlanPage key={query.toString()} /> },
  edit: { title: 'Edit', show: (_, query) => <EditPage key={query.toString()} path={query.get('path') ?? ''} /> },
  triggers: { title: 'Triggers', key: 'c', show: id => <TriggersPage id={id} /> },
  agents: { title: 'Agents', key: 'a', show: () => <Agents /> },
  workspaces: { title: 'Workspaces', key: 'w', show: () => <Workspaces /> },
  settings: { title: 'Settings', key: 's', show: () => <Settings /> },
}
const KEYS = keysOf(PAGES)

function Frame() {
  return (
    <>
      <PageBar pages={PAGES} />
      <CurrentPage pages={PAGES} />
      <Help pages={KEYS} />
    </>
  )
}

follow()
joinTabs()
listen(KEYS)
render(<Frame />, document.getElementById('page')!)
