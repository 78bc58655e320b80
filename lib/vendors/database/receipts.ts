// The statements for the table of receipts, in which each write leaves the key of its entry.

/** The statements, with the placeholders of the database. The name of the table comes from the settings. */
export function receiptsAt(placeholder: (number: number) => string) {
  return {
    add: (table: string) => `INSERT INTO ${table} (entry_key) VALUES (${placeholder(1)})`,
    count: (table: string) => `UPDATE ${table} SET affected = ${placeholder(1)} WHERE entry_key = ${placeholder(2)}`,
    get: (table: string) => `SELECT affected FROM ${table} WHERE entry_key = ${placeholder(1)}`,
  }
}
