// The exports of lib/vendors/google: requests to Google Drive with an account.

export { driveRequest } from './drive.ts'
export { driveUpload } from './drive-upload.ts'
