// `home moved`: a person says that this home was moved, and is not a copy beside the one that it was made from.

import { openRunDatabase, readMigrations } from '../../../db/open.ts'
import { commandLine } from '../../called-as.ts'
import { line } from '../../printable.ts'
import { Store } from '../../run/engine.ts'
import { print } from '../../terminal.ts'
import { Audit, MIGRATIONS } from '../audit.ts'
import { databaseFile, existingHome } from '../home.ts'
import { localName } from '../local-name.ts'
import { takeLock } from '../lock.ts'
import { settlePlace, takePlace } from '../place.ts'

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
  print(line`This home is the daemon again that it was. Start it: ${commandLine('serve')}`)
  print(line`The hub then refuses the daemon at the former place. Stop it there.`)
}
