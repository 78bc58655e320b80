// The pages of the hub: their frame, and which page an address shows. Whoever is not signed in gets the page for signing
// in, at any address, and then what the address says.

import '../style.css'
import './hub.css'
import '../kit/texts.ts'
import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import { Help, listen } from '../kit/keys.tsx'
import { Failure, useWork } from '../kit/parts.tsx'
import { follow, route, to } from '../kit/route.ts'
import { Bar, NoPage } from '../run/frame.tsx'
import { Reviews } from '../run/reviews.tsx'
import { askHub } from './as-daemon.ts'
import { Audit } from './audit.tsx'
import { OneDaemon } from './daemon.tsx'
import { Daemons } from './daemons.tsx'
import { Dispatch } from './dispatch.tsx'
import { findSession, me, signOut } from './kit/api.ts'
import { loadRealms, realms } from './kit/realm-choice.tsx'
import { OnePackage, Packages } from './packages.tsx'
import { Account } from './people/account.tsx'
import { Join, SignIn } from './people/session.tsx'
import { Tokens } from './people/tokens.tsx'
import { Queue } from './queue.tsx'
import { OneRealm } from './realm.tsx'
import { Realms } from './realms.tsx'
import { OneRun } from './run.tsx'
import { Runs } from './runs.tsx'

const LINKS = {
  runs: 'Runs',
  reviews: 'Reviews',
  dispatch: 'Dispatch',
  queue: 'Queue',
  daemons: 'Daemons',
  packages: 'Packages',
  realms: 'Realms',
  tokens: 'Tokens',
  audit: 'Audit',
}

const KEYS = {
  r: 'runs',
  v: 'reviews',
  n: 'dispatch',
  q: 'queue',
  d: 'daemons',
  p: 'packages',
  m: 'realms',
  t: 'tokens',
  a: 'audit',
}

/** A hub that does not answer is asked again. */
const AGAIN_MS = 2_000

function Page() {
  const { parts, query } = route.value
  const [name, id] = parts
  switch (name) {
    case 'runs':
      return id === undefined ? <Runs /> : <OneRun key={id} id={id} />
    case 'reviews':
      return <Reviews />
    case 'dispatch':
      return <Dispatch key={`${query.get('like')} ${query.get('team')}`} />
    case 'queue':
      return <Queue />
    case 'daemons':
      return id === undefined ? <Daemons /> : <OneDaemon key={id} id={id} />
    case 'packages':
      return id === undefined ? <Packages /> : <OnePackage key={id} name={id} />
    case 'realms':
      return id === undefined ? <Realms /> : <OneRealm key={id} id={id} />
    case 'tokens':
      return <Tokens />
    case 'audit':
      return <Audit />
    case 'account':
      return <Account />
    case 'join':
      return <Join token={id ?? ''} />
    default:
      return <NoPage name={name} />
  }
}

function Signed() {
  const { error, run } = useWork()
  useEffect(() => {
    realms.value = null
    void run(loadRealms)
  }, [me.value?.id])
  return (
    <>
      <Bar links={LINKS} titles={{ account: 'Account' }}>
        <span class="account row">
          <a class="small" href={to('account')}>
            {me.value?.username}
          </a>
          <button type="button" class="plain small" onClick={() => run(signOut)}>
            Sign out
          </button>
        </span>
      </Bar>
      <Failure of={error} />
      {realms.value === null ? <main aria-busy="true" /> : <Page />}
      <Help places={KEYS} />
    </>
  )
}

function Frame() {
  const { error, run } = useWork()
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
