import type { DiskDocument, EstatsSnapshot } from 'rocev2/internal/estats';
import { z } from 'zod';
import { type ClusterDocument, clusterSchema } from './cluster-document.js';
import { diskSchema, endpointSchema } from './document-schemas.js';
import { type SwitchDocument, switchSchema } from './switch-document.js';

export type WatchedDocument = EstatsSnapshot | SwitchDocument | DiskDocument | ClusterDocument;

const watchedSchema = z.discriminatedUnion('kind', [endpointSchema, switchSchema, diskSchema, clusterSchema]);

export function parseWatched(json: unknown): WatchedDocument {
  return watchedSchema.parse(json);
}

export function isMeant(which: string, { pid, address }: WatchedDocument): boolean {
  return which === String(pid) || which === address;
}
