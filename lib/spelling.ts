// What was meant by a misspelt name: the one copy of it is lib/spelling.ts.

export * from '../spelling.ts'
