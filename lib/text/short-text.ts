/** The beginning of a text that others keep, in a form that JSON and PostgreSQL take. `most`: UTF-16 units. */
export const shortText = (text: string, most: number): string => text.slice(0, most).toWellFormed().replaceAll('\0', '')
