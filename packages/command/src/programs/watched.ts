import type { DiskDocument, EstatsSnapshot } from 'rocev2/internal/estats';
import { z } from 'zod';
import { type ClusterDocument, clusterSchema } from './cluster-document.js';
import { diskSchema, endpointSchema } from './document-schemas.js';
import { type SwitchDocument, switchSchema } from './switch-document.js';

/** A document of any kind; its `kind` tells which. */
export type WatchedDocument = EstatsSnapshot | SwitchDocument | DiskDocument | ClusterDocument;

const watchedSchema = z.discriminatedUnion('kind', [endpointSchema, switchSchema, diskSchema, clusterSchema]);

export function parseWatched(json: unknown): WatchedDocument {
  return watchedSchema.parse(json);
}

/** Whether a person who wrote this, a process number or an address, meant the program. */
export function isMeant(which: string, { pid, address }: WatchedDocument): boolean {
  return which === String(pid) || which === address;
}
