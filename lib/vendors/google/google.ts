// The door of Google's clouds: Drive, as an account.

export { driveRequest } from './drive.ts'
export { driveUpload } from './drive-upload.ts'
