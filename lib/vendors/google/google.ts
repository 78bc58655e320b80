// The door of Google's clouds: Drive.

export * as drive from './drive.ts'
