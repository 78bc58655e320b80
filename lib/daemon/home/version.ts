// The version of this program, as /health and `--version` report it.

import manifest from '../../../package.json'

export const { version } = manifest
