// triggers/*: what starts runs by itself, and what became of each occasion.

import { CadreError } from '../../error.ts'
import { declared } from '../../firing/declared.ts'
import { named } from '../../firing/shown.ts'
import { resource } from '../../http/resource.ts'
import {
  AddTrigger,
  BackfillTrigger,
  DisableTrigger,
  EnableTrigger,
  GetTrigger,
  ListFirings,
  ListTriggers,
  PauseTrigger,
  PreviewTrigger,
  RefireTrigger,
  RemoveTrigger,
  ResumeTrigger,
  RunTrigger,
  UpdateTrigger,
} from '../../wire/calls/triggers.ts'
import { page } from '../../wire/page.ts'
import type { Caller } from '../access/access.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { Triggers } from '../triggers/triggers.ts'

export function triggers(daemon: Daemon, kit: DaemonKit) {
  const triggers = new Triggers(daemon)
  return resource('triggers', kit, [
    answer(AddTrigger, ({ body, caller }) => triggers.add(body, caller.actor)),
    answer(UpdateTrigger, ({ body: { trigger_id, revision, ...changes }, caller }) =>
      triggers.update({ trigger_id }, changes, revision, caller.actor),
    ),
    answer(RemoveTrigger, ({ body, caller }) => triggers.remove(named(body), caller.actor)),
    answer(EnableTrigger, async ({ body, caller }) =>
      body.team === undefined
        ? triggers.enable(named(body), caller.actor)
        : triggers.enableDeclared(declared({ ...body, team: body.team }), caller.actor),
    ),
    answer(DisableTrigger, ({ body, caller }) => triggers.disable(named(body), caller.actor)),
    answer(PauseTrigger, ({ body, caller }) => triggers.pause(named(body), body.reason ?? null, caller.actor)),
    answer(ResumeTrigger, ({ body, caller }) => triggers.resume(named(body), body.catch_up ?? 'none', caller.actor)),
    answer(GetTrigger, ({ body }) => triggers.get(named(body))),
    answer(ListTriggers, ({ body }) => triggers.list({ ...body, ...page(body) })),
    answer(PreviewTrigger, ({ body, caller }) => {
      mayName(caller, body.team, body.folder)
      return triggers.previewFor(body)
    }),
    answer(RunTrigger, ({ body, caller }) =>
      triggers.runNow(named(body), { force: body.force ?? false, by: caller.actor }),
    ),
    answer(BackfillTrigger, ({ body, caller }) => {
      const { from, to, most = 100, dry_run: dryRun = false, yes = false } = body
      return triggers.backfill(named(body), { from, to, most, dryRun, yes, by: caller.actor })
    }),
    answer(ListFirings, ({ body }) => triggers.firingsFor(body)),
    answer(RefireTrigger, ({ body, caller }) =>
      triggers.refire(body.firing_id, { again: body.again ?? false, by: caller.actor }),
    ),
  ])
}

/** A caller from elsewhere may name packages, and no folder of this machine. */
function mayName({ local }: Caller, team: string | undefined, folder?: string): void {
  if (local || (folder === undefined && !team?.startsWith('/'))) return
  throw new CadreError('forbidden', 'a folder is only named on the daemon’s own machine')
}
