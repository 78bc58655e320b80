// triggers/*: what starts runs of a realm by itself, and what became of each occasion.

import { declared } from '../../firing/declared.ts'
import { resource } from '../../http/resource.ts'
import {
  AddRealmTrigger,
  BackfillRealmTrigger,
  DisableRealmTrigger,
  EnableRealmTrigger,
  GetRealmTrigger,
  ListRealmFirings,
  ListRealmTriggers,
  PauseRealmTrigger,
  PreviewRealmTrigger,
  RefireRealmTrigger,
  RemoveRealmTrigger,
  ResumeRealmTrigger,
  RunRealmTrigger,
  UpdateRealmTrigger,
} from '../../wire/calls/triggers.ts'
import { answer } from '../access/answer.ts'
import { hubKit } from '../access/kit.ts'
import type { Hub } from '../core/hub.ts'
import { StartsByHand } from '../triggers/by-hand.ts'
import { RealmTriggers } from '../triggers/changes.ts'
import { firingsFor, getTrigger, listTriggersFor, previewFor, realmGiven } from '../triggers/realm-view.ts'

export function triggers(hub: Hub) {
  const triggers = new RealmTriggers(hub)
  const byHand = new StartsByHand(hub)
  return resource('triggers', hubKit(hub), [
    answer(AddRealmTrigger, ({ body, caller }) => triggers.add(caller, body)),
    answer(UpdateRealmTrigger, ({ body, caller }) => triggers.update(caller, body)),
    answer(RemoveRealmTrigger, ({ body, caller }) => triggers.remove(caller, body)),
    answer(EnableRealmTrigger, async ({ body: { team, secret: _, ...which }, body, caller }) =>
      team === undefined
        ? triggers.enable(caller, which)
        : triggers.enableDeclared(caller, realmGiven(declared({ ...body, team }))),
    ),
    answer(DisableRealmTrigger, ({ body, caller }) => triggers.disable(caller, body)),
    answer(PauseRealmTrigger, ({ body, caller }) => triggers.pause(caller, body, body.reason ?? null)),
    answer(ResumeRealmTrigger, ({ body, caller }) => triggers.resume(caller, body, body.catch_up ?? 'none')),
    answer(GetRealmTrigger, ({ body, caller }) => getTrigger(hub, caller, body)),
    answer(ListRealmTriggers, ({ body, caller }) => listTriggersFor(hub, caller, body)),
    answer(PreviewRealmTrigger, ({ body, caller }) => previewFor(hub, caller, body)),
    answer(RunRealmTrigger, ({ body, caller }) => byHand.runNow(caller, body, body.force ?? false)),
    answer(BackfillRealmTrigger, ({ body, caller }) => {
      const { from, to, most = 100, dry_run: dryRun = false, yes = false, ...which } = body
      return byHand.backfill(caller, which, { from, to, most, dryRun, yes })
    }),
    answer(ListRealmFirings, ({ body, caller }) => firingsFor(hub, caller, body)),
    answer(RefireRealmTrigger, ({ body, caller }) => byHand.refire(caller, body.firing_id, body.again ?? false)),
  ])
}
