/**
 * Internals of estats that the packages of this repository use. No part of the public API: it changes without notice.
 */

export { checkControlDirectory, controlDirectoryPath } from '../verbs/estats/control-directory.js';
export {
  type ListeningServer,
  openControlSocket,
  send,
  sendJson,
  serveDocument,
} from '../verbs/estats/control-socket.js';
export { type Diagnosis, diagnose, type Owner } from '../verbs/estats/diagnosis.js';
export { DISK_OPS, type DiskDocument, type DiskOp } from '../verbs/estats/disk-document.js';
export type { Dump, DumpedPacket } from '../verbs/estats/dump-log.js';
export type { EstatsSnapshot, GroupRow, QpRow } from '../verbs/estats/endpoint-document.js';
export { Histogram, type HistogramBar, type LatencySummary } from '../verbs/estats/histogram.js';
export type { HistogramDocument } from '../verbs/estats/http-handler.js';
export { boundedHttpServer, isFromOtherSite, isOwnName, urlOf } from '../verbs/estats/http-server.js';
export type { OpLatency } from '../verbs/estats/op-latency.js';
export { CONSECUTIVE_STAGES, STAGES, type StageName, stageLabel, stageText } from '../verbs/estats/stages.js';
