// The hub's tests on PostgreSQL, asked of one hub.

import { testOnPostgres } from './suite.ts'

testOnPostgres(1)
