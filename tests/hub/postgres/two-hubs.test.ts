// The hub's other tests on PostgreSQL, asked of two hubs in turn. A file beside one-hub.test.ts, so that both can run at
// the same time.

import { testOnPostgres } from './suite.ts'

testOnPostgres(2)
