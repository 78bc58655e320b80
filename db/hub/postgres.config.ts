import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: './db/hub/postgres.ts',
  out: './db/hub/migrations/postgres',
})
