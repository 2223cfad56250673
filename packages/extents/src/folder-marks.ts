/**
 * Recognizes an older copy of a node's folder. The node writes a random mark, with the one before, at each start and
 * each checkpoint; the metadata has the last one that was reported. A folder whose marks are both others was copied
 * before the last report, or a copy of it has run since.
 */

import { RpcError } from '@rocev2/rpc';
import type { MetadataSchema, NodeRecord } from './metadata-schema.js';

/** What a folder says of itself. */
export interface FolderMarks {
  /** Starts of the node so far. */
  readonly lives: number;
  /** Missing in a new folder. */
  readonly mark?: string;
  readonly before?: string;
}

/** Why the folder is not the latest; undefined: it is. */
export function checkFolder(known: NodeRecord, { lives, mark, before }: FolderMarks): string | undefined {
  if (lives < known.lives) return `it has been started ${lives} times, and ${known.lives} starts have been seen`;
  if (known.mark === undefined || known.mark === mark || known.mark === before) return undefined;
  return 'its mark is not the last one that the manager has seen, so it was copied before that or a copy of it has run';
}

interface RefusingManager {
  readonly counters: { refusedDisks: number };
  readonly schema: MetadataSchema;
}

export async function refuseFolder(manager: RefusingManager, node: number, why: string): Promise<RpcError> {
  const refused = `the folder of node ${node} is an older copy: ${why}; start the node with the latest folder; if that is lost, empty it, and the cluster fills it again (if no other replicas are left: 'extents node --trust-folder' uses it as it is)`;
  await noteRefusal(manager, node, refused);
  return new RpcError('CONFLICT', refused);
}

/** Until the node joins or reports with the latest folder and journal, its replicas count as lost. */
export async function noteRefusal({ counters, schema }: RefusingManager, node: number, refused: string): Promise<void> {
  counters.refusedDisks++;
  const known = await schema.node(node);
  if (known !== undefined && known.value.refused !== refused)
    await schema.commit([{ key: known.key, version: known.version, value: { ...known.value, refused } }]);
}
