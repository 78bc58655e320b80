// What a power cut takes from the file system comes back from the run database, where it is sealed.

import { expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'

const TEAM = {
  'team.yml': `
name: "@local/cut"
version: 1.0.0
phases:
  - { name: below, type: team, team: ./below }
`,
  'below/team.yml': `
name: "@local/below"
version: 1.0.0
outputs: [{ name: doc, type: file, value: "{{ phases.write.files[0].path }}" }]
phases:
  - { name: write, agent: exec, commands: [{ name: w, run: 'printf "%s small %s" a file > "$CADRE_OUT/doc.txt"' }] }
`,
}

test('after a power cut small files are made again, here and where they were handed over', async () => {
  const home = folder()
  const first = await testEngine({ home })
  const { run_id } = await first.run(TEAM)
  const [below] = first.engine.phases(run_id).phases
  const files = [
    join(home, 'runs', below!.sub_runs[0]!.run_id, 'files/write/doc.txt'),
    join(home, 'runs', run_id, 'files/below/doc.txt'),
  ]
  expect(files.map(file => readFileSync(file, 'utf8'))).toEqual(['a small file', 'a small file'])
  first.engine.store.facts.set('boot', 'the boot before')
  await first.close()
  for (const name of ['daemon.db', 'daemon.db-wal'].filter(name => existsSync(join(home, name)))) {
    expect(readFileSync(join(home, name)).includes('a small file')).toBe(false)
  }
  rmSync(files[0]!)
  writeFileSync(files[1]!, '')

  const second = await testEngine({ home })
  expect(files.map(file => readFileSync(file, 'utf8'))).toEqual(['a small file', 'a small file'])
  await second.close()
})
