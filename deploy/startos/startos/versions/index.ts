import { VersionGraph, VersionInfo } from '@start9labs/start-sdk'

const current = VersionInfo.of({
  version: '0.3.0:0',
  releaseNotes: 'The first version for StartOS.',
  migrations: {}, // the program brings its database to its version
})

export const versions = VersionGraph.of({ current, other: [] })
