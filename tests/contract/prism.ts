// `prism mock` for several documents in one process, for loading Prism takes longer than all of them.
// Their addresses are written to stdout in the order of the arguments, each in a line `… listening on http://…`.

import { createSingleProcessPrism } from '@stoplight/prism-cli/dist/util/createServer'

for (const document of process.argv.slice(2)) {
  await createSingleProcessPrism({
    document,
    host: '127.0.0.1',
    port: 0,
    dynamic: false,
    cors: false,
    errors: false,
    multiprocess: false,
    verboseLevel: 'start',
    ignoreExamples: false,
    seed: '',
    jsonSchemaFakerFillProperties: false,
  })
}
