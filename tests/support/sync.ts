// Changes as daemons report them with runs/sync.

/** A change that reports a top run of `@admin/t`. `run` overrides its fields. */
export function runChange(run_id: string, run: object = {}, attempt = 1) {
  const record = {
    run_id,
    run_name: null,
    root_run_id: run_id,
    parent_run_id: null,
    parent_phase: null,
    call_path: ['@admin/t'],
    call_depth: 0,
    tree_key: '',
    team: '@admin/t',
    version: '1.0.0',
    state: 'running',
    reason: null,
    error: null,
    inputs: { a: 1 },
    outputs: null,
    workspace: null,
    started_at: 1_000,
    completed_at: null,
    ...run,
  }
  return { kind: 'run', run_id, attempt, run: record }
}

/** A change that reports that the phase `say` asks a person, as a gate does. `review` overrides its fields. */
export function reviewChange(run_id: string, id: string, review: object = {}, attempt = 1) {
  const record = {
    id,
    run_name: null,
    phase: 'say',
    entries: [],
    kind: 'gate',
    reason: null,
    prompt: 'Go on?',
    state: 'pending',
    decision: null,
    decided_by: null,
    created_at: 2,
    decided_at: null,
    ...review,
  }
  return { kind: 'review', run_id, attempt, review: record }
}

/** A file that a phase may have recorded: its content, and its record. */
export const FILE = {
  content: 'a file of a run',
  record: {
    name: 'a.txt',
    path: 'files/say/a.txt',
    bytes: 15,
    sha256: new Bun.CryptoHasher('sha256').update('a file of a run').digest('hex'),
  },
}

/** A change that reports the phase `say` with its files, as it is after it has completed. */
export function phaseChange(run_id: string, files: object[] = [FILE.record], attempt = 1) {
  const phase = {
    ...{ name: 'say', index: 0, type: 'standard', agent: 'http', action: null, state: 'completed', reason: null },
    ...{ attempt, depends_on: [], started_at: 1, completed_at: 2, error: null, ok: true, text: '', data: null, files },
  }
  return { kind: 'phase', run_id, attempt, phase }
}
