// The hub's other tests on PostgreSQL, asked of two hubs in turn: the first third. They are files beside one-hub.test.ts,
// so that all can run at the same time.

import { testOnPostgres } from './suite.ts'

testOnPostgres(2, 0, 3)
