/** The entry of @rocev2/command. */

export { addAliasedOption, addFaultsOption } from './aliased-option.js';
export { COMMAND_GROUPS, type CommandEntry } from './command-entry.js';
export { counted } from './counted.js';
export { backendParameters } from './disk/backend-parameters.js';
export type { BenchRow, Contender } from './disk/bench-run.js';
export { addPlanOptions, type BenchPlan, measureInTurns, printRows } from './disk/bench-turns.js';
export {
  addRdmaOptions,
  addTelemetryOption,
  DISK_CLOSING_MS,
  flowOf,
  openStorageDevice,
  type RdmaOptions,
} from './disk/rdma-options.js';
export { type DocumentKind, defineDocument, defineLines } from './document.js';
export {
  CommandFailure,
  describeFailure,
  EXIT_FAILED,
  EXIT_INTERRUPTED,
  EXIT_NO_CONNECTION,
  EXIT_OK,
  EXIT_USAGE,
  EXIT_VERIFICATION_FAILED,
  exitCodeOf,
} from './exit.js';
export { addExtensionOption, extensionFilesOf } from './extensions.js';
export {
  type FrameFlags,
  type FrameWire,
  frameDeviceOptions,
  frameOption,
  framePortOption,
  hostOfWire,
  linkMtuOption,
} from './frame-wire.js';
export { addNetworkOptions, HELP_ALL, helpConfiguration, summaryOf } from './help-format.js';
export { type HostReport, hostReport } from './host-report.js';
export { inputName, readInputFile, readJsonFile, repeatableInput } from './input-file.js';
export { END_SIGNALS, endingInTime, endingWithFigures, orInterrupted, untilInterrupted } from './interruption.js';
export { type LatencyNs, LatencySamples } from './latency-samples.js';
export { LiveLine } from './live-line.js';
export { localAddressTowards } from './local-address.js';
export { addNicOptions, type NicFlags, nicOf, nicOptionsShape } from './nic-options.js';
export {
  addressOption,
  allowHostOption,
  alternatives,
  choiceOption,
  countOption,
  durationOption,
  listOption,
  messageSizeOption,
  mtuOption,
  optionWithDefault,
  portOption,
  portOrAnyOption,
  positiveDurationOption,
  positiveNumberOption,
  qpnOption,
  rangeOption,
  rateOption,
  secondsOption,
  secondsUpToOption,
  sizeOption,
  textOption,
} from './options.js';
export {
  type CliIo,
  type Column,
  leftAligned,
  Output,
  type Progress,
  printing,
  rightAligned,
  SILENT_PROGRESS,
} from './output.js';
export { checkWritable, checkWritableBeside, writeOutputFile } from './output-file.js';
export { packageVersion } from './package-version.js';
export { fillPattern, patternMismatch } from './pattern.js';
export { linger, type Silence, watched } from './peer-watch.js';
export { method, type ProcessMethod } from './processes/calls.js';
export { ChildService, whileAlive } from './processes/child-service.js';
export { serveParent } from './processes/serve-parent.js';
export type { ClusterDocument } from './programs/cluster-document.js';
export type { EndpointDocument } from './programs/document-schemas.js';
export {
  attach,
  type EndpointName,
  type EndpointOptions,
  type EndpointReading,
  type Endpoints,
  endpointName,
} from './programs/endpoints.js';
export {
  askDocument,
  askProgram,
  askSnapshot,
  controlSockets,
  findEndpoints,
  type ProgramTarget,
  removeIfDead,
} from './programs/program-client.js';
export type { SwitchDocument } from './programs/switch-document.js';
export { isMeant, type WatchedDocument } from './programs/watched.js';
export { whileListening } from './rdma-cm/while-listening.js';
export { addRecoveryOptions, type RecoveryFlags, recoveryOf } from './recovery-options.js';
export { resolveHost } from './resolve-host.js';
export { type PingOptions, RpingEnd, SIZE_MAX_BYTES, SIZE_MIN_BYTES, type Tally } from './rping-end.js';
export { addSecureOptions, isSecured, type SecureFlags, secureFlagsOf, secureOf } from './secure-options.js';
export { addHttpTelemetryOption, estatsOf, noDeviceForHttp, type TelemetryFlags } from './telemetry-options.js';
export { addRateControlOptions, type RateControlFlags, rateControlOf } from './transfer/rate-control.js';
export { type Copies, type CopyCounters, copiesOf, copyWords, reportCopies, wireWords } from './wire-words.js';
