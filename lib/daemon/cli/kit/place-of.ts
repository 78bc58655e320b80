// Chooses where a command looks at runs.

import { homeFolder } from '../../home/home.ts'
import { homePlace, type PlaceOptions, type RunPlace } from './run-place.ts'

/** What a hub needs is loaded for `--hub` only, so that `run` starts fast. */
export async function placeOf({ home: given, hub }: PlaceOptions): Promise<RunPlace> {
  const home = homeFolder(given)
  return hub === undefined ? homePlace(home) : (await import('./hub-place.ts')).hubPlace(home, hub)
}
