// Triggers: what starts runs by itself on a home or in a realm, and what became of each occasion. A hub answers the same
// calls; it knows the realm, and a person whose rights a trigger has.

import type { TProperties } from 'typebox'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { OptionalHookFields } from '../../triggers/hook/fields.ts'
import { OWNER, READER, WRITE } from '../access.ts'
import { atHub, call } from '../call.ts'
import { Requires } from '../needs.ts'
import { listBody, listOf, longListOf } from '../page.ts'
import { Moment, Path, Slug, TeamRef, Text, Title, Uuid, WrittenId } from '../parts.ts'
import { CHAIN, COMMON, countUpTo, On, SCHEDULE, WATCH } from '../records/trigger-fields.ts'
import { FIRING_REASONS, FIRING_STATES, TRIGGER_KINDS } from '../records/trigger-words.ts'
import { BackfillRecord, FiringRecord, PreviewRecord, RealmTriggerRecord, TriggerRecord } from '../records/triggers.ts'

/** The year 3000. Zones have no rules so far ahead, and a calendar ends. */
const LAST = 32_503_680_000_000

const secret = (description: string) => Type.Optional(Type.String({ maxLength: 10_000, description }))

/** Where senders post to the hooks, which have their tokens after it. */
export const HOOKS_PATH = '/v1/hooks'

const SPEC = { team: Path, ...COMMON, ...SCHEDULE, ...OptionalHookFields, ...CHAIN, ...WATCH, on: On }

const { team: _, ...CHANGES } = SPEC
const WHICH = { trigger_id: Type.Optional(Uuid), name: Type.Optional(Slug) }
const OneTrigger = closed(WHICH)
const change = <S extends string>(summary: S) => ({ summary, daemon: OWNER, data: TriggerRecord })

export const AddTrigger = call('/v1/triggers/add', {
  ...change('Add a trigger'),
  status: 201,
  body: closed({
    ...{ name: Slug, kind: Type.Enum([...TRIGGER_KINDS]), ...SPEC },
    secret: secret('Of a hook: what the sender and cadre share. It is sealed and shown nowhere.'),
  }),
})
export const UpdateTrigger = call('/v1/triggers/update', {
  ...change('Change a trigger'),
  body: closed({
    trigger_id: Uuid,
    revision: Type.Optional(Type.Integer({ minimum: 1, description: 'The one that was read: another is refused.' })),
    name: Type.Optional(Slug),
    team: Type.Optional(Path),
    ...CHANGES,
    add_secret: secret('Of a hook: another secret that fits from now on; at most two do at a time.'),
    expire_secret: Type.Optional({ ...Uuid, description: 'Of a hook: the id of a secret that fits no more.' }),
    keep: Type.Optional(
      Type.Boolean({
        description: 'Of a trigger that a team declares: whether it goes on as it is when that changes.',
      }),
    ),
  }),
})
export const RemoveTrigger = call('/v1/triggers/remove', { ...change('Remove a trigger'), body: OneTrigger })
const DECLARES = { description: 'The team that declares the trigger `name`.' }
export const EnableTrigger = call('/v1/triggers/enable', {
  ...change('Look at occasions again, or for the first time at those of a trigger that a team declares'),
  body: closed({
    ...WHICH,
    team: Type.Optional({ ...Path, ...DECLARES }),
    secret: secret('Of a hook that is enabled for the first time.'),
  }),
})
export const DisableTrigger = call('/v1/triggers/disable', { ...change('Look at no occasion'), body: OneTrigger })
export const PauseTrigger = call('/v1/triggers/pause', {
  ...change('Start nothing until it is resumed'),
  body: closed({ ...WHICH, reason: Type.Optional(nullable(Text(1_000, 1))) }),
})
export const ResumeTrigger = call('/v1/triggers/resume', {
  ...change('Go on after a pause'),
  body: closed({
    ...WHICH,
    catch_up: Type.Optional(Type.Enum(['none', 'last', 'all'], { description: 'What becomes of slots of the pause.' })),
  }),
})
export const GetTrigger = call('/v1/triggers/get', {
  summary: 'One trigger, with what it does next and did last',
  daemon: READER,
  body: OneTrigger,
  data: TriggerRecord,
})
export const ListTriggers = call('/v1/triggers/list', {
  summary: 'Triggers by name',
  daemon: READER,
  body: listBody({
    kind: Type.Optional(Type.Enum([...TRIGGER_KINDS])),
    /** Only those that start it, in whatever version. */
    team: Type.Optional(Path),
  }),
  data: listOf('triggers', TriggerRecord),
})
export const PreviewTrigger = call('/v1/triggers/preview', {
  summary: 'When a schedule is due, what a hook would do with a delivery, or which files a watch would report',
  daemon: READER,
  body: closed({
    ...WHICH,
    team: Type.Optional(Path),
    ...CHANGES,
    body: Type.Optional(Type.Unknown({ description: 'Of a hook: the body of a delivery, as a value.' })),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'Of a hook: the headers of a delivery.' }),
    ),
    after: Type.Optional(
      Type.Union(
        [
          Type.Integer({
            minimum: 0,
            maximum: LAST,
            description: 'Only slots after it, in epoch milliseconds; absent: now.',
          }),
          // The same word names what a chain follows.
          CHAIN.after,
        ],
        {
          description:
            'Only slots after it, in epoch milliseconds (absent: now); of a chain, the team that it follows.',
        },
      ),
    ),
    until: Type.Optional(Type.Integer({ minimum: 0, maximum: LAST, description: 'Only slots up to it.' })),
    limit: countUpTo(1_000, 'How many slots, or files.'),
  }),
  data: PreviewRecord,
})
export const RunTrigger = call('/v1/triggers/run_now', {
  summary: 'Start a run of a trigger now',
  daemon: OWNER,
  body: closed({
    ...WHICH,
    force: Type.Optional(Type.Boolean({ description: 'Whether it starts although another run of it has not ended.' })),
  }),
  data: FiringRecord,
})
export const BackfillTrigger = call('/v1/triggers/backfill', {
  summary: 'Start slots of the past that have no firing or were missed, one after the other',
  daemon: OWNER,
  body: closed({
    ...WHICH,
    from: Type.Integer({ minimum: 0, maximum: LAST, description: 'The first moment, in epoch milliseconds.' }),
    to: Type.Integer({ minimum: 0, maximum: LAST, description: 'The moment before which slots count; at most now.' }),
    dry_run: Type.Optional(Type.Boolean({ description: 'Whether to say only what would start.' })),
    most: countUpTo(1_000, 'How many start at most, the oldest first; 100 if absent.'),
    yes: Type.Optional(
      Type.Boolean({
        description: 'Starts also what may have started where this home, or the database of the hub, was copied from.',
      }),
    ),
  }),
  data: BackfillRecord,
})
export const ListFirings = call('/v1/triggers/firings', {
  summary: 'What became of the occasions of a trigger, newest first; or the firings whose id begins so',
  daemon: READER,
  body: listBody({
    ...WHICH,
    begins: Type.Optional(WrittenId),
    state: Type.Optional(Type.Enum([...FIRING_STATES])),
    reason: Type.Optional(Type.Enum([...FIRING_REASONS])),
    since: Type.Optional(Moment),
    until: Type.Optional(Moment),
    with_body: Type.Optional(
      Type.Boolean({ description: 'Whether the stored delivery of a hook is in its firing, with secrets masked.' }),
    ),
  }),
  data: longListOf('firings', FiringRecord),
})
export const RefireTrigger = call('/v1/triggers/refire', {
  summary: 'The same occasion of a trigger again',
  daemon: OWNER,
  body: closed({
    firing_id: Uuid,
    again: Type.Optional(Type.Boolean({ description: 'Whether it starts a second run of an occasion that had one.' })),
  }),
  data: FiringRecord,
})

const CHANGE = { grant: { triggers: 'write' }, realm: 'operator' } as const
/** To stop triggers, and what makes them start runs, which takes the grant to start them, too. */
const STOPS = { user: CHANGE } as const
const STARTS = { user: { ...CHANGE, also: WRITE.grant } } as const
const LOOK = { user: { grant: { triggers: 'read' }, realm: 'member' } } as const

/** As `dispatch/run` takes them. */
const DISPATCH = {
  workspace: Type.Optional(nullable(Text(200, 1))),
  run_name: Type.Optional(nullable(Title)),
  requires: Type.Optional(nullable(Requires)),
  priority: Type.Optional(Type.Integer({ minimum: -1_000, maximum: 1_000 })),
  queue_timeout: Type.Optional(nullable(Text(100, 1))),
}
/** By its id, or by its realm and name. */
const OF_REALM = { ...WHICH, realm_id: Type.Optional(Uuid) }
const ofRealm = <P extends TProperties>(more: P) => closed({ ...OF_REALM, ...more })
const started = { hub: STARTS, data: RealmTriggerRecord }
const stopped = { hub: STOPS, data: RealmTriggerRecord }

const { kind: __, ...ADDED } = AddTrigger.body.properties

export const AddRealmTrigger = atHub(AddTrigger, {
  ...started,
  // A hub has no folders to watch.
  body: closed({
    ...ADDED,
    realm_id: Uuid,
    kind: Type.Enum(['schedule', 'hook', 'chain']),
    team: TeamRef,
    ...DISPATCH,
  }),
})
export const UpdateRealmTrigger = atHub(UpdateTrigger, {
  ...started,
  body: closed({
    ...UpdateTrigger.body.properties,
    realm_id: Type.Optional(Uuid),
    team: Type.Optional(TeamRef),
    ...DISPATCH,
    owner: Type.Optional(
      Type.Literal('me', { description: 'Takes it over: its runs start with the rights of the caller from now on.' }),
    ),
  }),
})
export const RemoveRealmTrigger = atHub(RemoveTrigger, { ...stopped, body: ofRealm({}) })
export const EnableRealmTrigger = atHub(EnableTrigger, {
  ...started,
  body: ofRealm({ ...EnableTrigger.body.properties, team: Type.Optional({ ...TeamRef, ...DECLARES }) }),
})
export const DisableRealmTrigger = atHub(DisableTrigger, { ...stopped, body: ofRealm({}) })
export const PauseRealmTrigger = atHub(PauseTrigger, { ...stopped, body: ofRealm(PauseTrigger.body.properties) })
export const ResumeRealmTrigger = atHub(ResumeTrigger, { ...started, body: ofRealm(ResumeTrigger.body.properties) })
export const GetRealmTrigger = atHub(GetTrigger, { hub: LOOK, body: ofRealm({}), data: RealmTriggerRecord })
export const ListRealmTriggers = atHub(ListTriggers, {
  hub: LOOK,
  body: closed({ ...ListTriggers.body.properties, realm_id: Type.Optional(Uuid) }),
  data: listOf('triggers', RealmTriggerRecord),
})
export const PreviewRealmTrigger = atHub(PreviewTrigger, { hub: LOOK, body: ofRealm(PreviewTrigger.body.properties) })
export const RunRealmTrigger = atHub(RunTrigger, { hub: STARTS, body: ofRealm(RunTrigger.body.properties) })
export const BackfillRealmTrigger = atHub(BackfillTrigger, {
  hub: STARTS,
  body: ofRealm(BackfillTrigger.body.properties),
})
export const ListRealmFirings = atHub(ListFirings, {
  hub: LOOK,
  body: ofRealm(ListFirings.body.properties),
  data: longListOf('firings', FiringRecord),
})
export const RefireRealmTrigger = atHub(RefireTrigger, {
  hub: STARTS,
  body: closed({ ...RefireTrigger.body.properties, realm_id: Type.Optional(Uuid) }),
})
