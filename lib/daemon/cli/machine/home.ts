// `home moved`: a person says that this home was moved, and is not a copy beside the one that it was made from.

import { openRunDatabase, readMigrations } from '../../../../db/open.ts'
import { commandLine } from '../../../program/called-as.ts'
import { Store } from '../../../run/engine.ts'
import { line } from '../../../text/printable.ts'
import { print } from '../../../text/terminal.ts'
import { Audit } from '../../home/audit.ts'
import { settlePlace, takePlace } from '../../home/copied-home.ts'
import { databaseFile, existingHome } from '../../home/home.ts'
import { localName } from '../../home/local-name.ts'
import { takeLock } from '../../home/lock.ts'
import { MIGRATIONS } from '../../home/run-database.ts'

export async function moved(options: { home?: string }): Promise<void> {
  const home = existingHome(options.home)
  const migrations = await readMigrations(MIGRATIONS)
  const lock = takeLock(home, 'home moved')
  try {
    using db = openRunDatabase(databaseFile(home), migrations)
    // It may be the first command that is called at the new place.
    settlePlace(db, home, Date.now())
    const audit = new Audit(db, { warn: () => {} })
    db.transaction(() => {
      takePlace(new Store(db))
      audit.write({ actor: localName(), action: 'home/moved', target: null })
    }).immediate()
    audit.sealAll()
  } finally {
    lock.release()
  }
  print(line`This home keeps its daemon at the hub. Start it: ${commandLine('serve')}`)
  print(line`The hub then refuses the daemon of the former home: stop that one.`)
}
