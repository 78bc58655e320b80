// The hub's tests on PostgreSQL that look at one request at a time, asked of one hub.

import { testOnPostgres } from './suite.ts'

testOnPostgres(1)
