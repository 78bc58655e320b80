// The pages of the hub: their table, and their frame. Whoever is not signed in gets the page for signing
// in, at any address, and then what the address says.

import '../kit/style.css'
import './hub.css'
import '../kit/texts.ts'
import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import { useAction } from '../kit/actions.tsx'
import { Help, listen } from '../kit/keys.tsx'
import { later } from '../kit/later.tsx'
import { Failure } from '../kit/parts.tsx'
import { follow, route, to } from '../kit/route.ts'
import { CurrentPage, keysOf, PageBar, type Pages } from '../run/frame.tsx'
import { Reviews } from '../run/reviews.tsx'
import { DaemonPage } from './daemon.tsx'
import { Daemons } from './daemons.tsx'
import { Dispatch } from './dispatch.tsx'
import { findSession, me, signOut } from './kit/api.ts'
import { loadRealms, realms } from './kit/realm-choice.tsx'
import { Account } from './people/account.tsx'
import { Join, SignIn } from './people/session.tsx'
import { Queue } from './queue.tsx'
import { RealmPage } from './realm.tsx'
import { Realms } from './realms.tsx'
import { RunPage } from './run.tsx'
import { askHub } from './run-calls.ts'
import { Runs } from './runs.tsx'
import { TriggersPage } from './triggers.tsx'

const Audit = later('audit', async () => (await import('./audit.tsx')).Audit)
const Packages = later('packages', async () => (await import('./packages.tsx')).Packages)
const PackagePage = later('package', async () => (await import('./packages.tsx')).PackagePage)
const Teams = later('teams', async () => (await import('./teams.tsx')).Teams)
const Tokens = later('tokens', async () => (await import('./people/tokens.tsx')).Tokens)

const PAGES: Pages = {
  runs: { title: 'Runs', key: 'r', show: id => (id === undefined ? <Runs /> : <RunPage key={id} id={id} />) },
  reviews: { title: 'Reviews', key: 'v', show: () => <Reviews /> },
  teams: { title: 'Teams', key: 'e', show: () => <Teams /> },
  dispatch: {
    title: 'Dispatch',
    key: 'n',
    show: (_, query) => <Dispatch key={`${query.get('like')} ${query.get('team')}`} />,
  },
  triggers: { title: 'Triggers', key: 'c', show: id => <TriggersPage id={id} /> },
  queue: { title: 'Queue', key: 'q', show: () => <Queue /> },
  daemons: {
    title: 'Daemons',
    key: 'd',
    show: id => (id === undefined ? <Daemons /> : <DaemonPage key={id} id={id} />),
  },
  packages: {
    title: 'Packages',
    key: 'p',
    show: name => (name === undefined ? <Packages /> : <PackagePage key={name} name={name} />),
  },
  realms: { title: 'Realms', key: 'm', show: id => (id === undefined ? <Realms /> : <RealmPage key={id} id={id} />) },
  tokens: { title: 'Tokens', key: 't', show: () => <Tokens /> },
  audit: { title: 'Audit', key: 'a', show: () => <Audit /> },
  account: { title: 'Account', show: () => <Account /> },
  join: { title: 'Join', show: token => <Join token={token ?? ''} /> },
}
const KEYS = keysOf(PAGES)

/** When a hub does not answer, the page asks again after this time. */
const AGAIN_MS = 2_000

function Signed() {
  const { error, run } = useAction()
  useEffect(() => {
    realms.value = null
    void run(loadRealms)
  }, [me.value?.id])
  return (
    <>
      <PageBar pages={PAGES}>
        <span class="account row">
          <a class="small" href={to('account')}>
            {me.value?.username}
          </a>
          <button type="button" class="plain small" onClick={() => run(signOut)}>
            Sign out
          </button>
        </span>
      </PageBar>
      <Failure of={error} />
      {realms.value === null ? <main aria-busy="true" /> : <CurrentPage pages={PAGES} />}
      <Help pages={KEYS} />
    </>
  )
}

function Frame() {
  const { error, run } = useAction()
  useEffect(() => {
    void run(findSession)
    const timer = setInterval(() => me.value === undefined && void run(findSession), AGAIN_MS)
    return () => clearInterval(timer)
  }, [])
  const [here, id] = route.value.parts
  if (me.value) return <Signed />
  return (
    <>
      <header class="frame">
        <span class="brand">cadre</span>
      </header>
      <Failure of={error} />
      {me.value === null && (here === 'join' ? <Join token={id ?? ''} /> : <SignIn />)}
    </>
  )
}

askHub()
follow()
listen(KEYS)
render(<Frame />, document.getElementById('page')!)
