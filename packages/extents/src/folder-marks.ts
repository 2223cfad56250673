/**
 * Recognizes an older copy of a node's folder. The node writes a random mark, with the one before, at each start and
 * each checkpoint; the metadata has the last one that was reported. A folder whose marks are both others was copied
 * before the last report, or a copy of it has run since.
 */

import { RpcError } from '@rocev2/rpc';
import type { ManagerState } from './manager-state.js';
import type { FolderMarks } from './messages.js';
import type { NodeRecord } from './metadata-schema.js';

/** Why the folder is not the latest; undefined: it is. */
export function checkFolder(known: NodeRecord, { lives, mark, before }: FolderMarks): string | undefined {
  if (lives < known.lives) return `it has been started ${lives} times, and ${known.lives} starts have been seen`;
  if (known.mark === undefined || known.mark === mark || known.mark === before) return undefined;
  return 'its mark is not the last one that the manager has seen, so it was copied before that or a copy of it has run';
}

type RefusingManager = Pick<ManagerState, 'counters' | 'live' | 'parts' | 'schema'>;

/** A folder that a node was started with, `HOST:PATH`; missing with nodes of earlier versions. */
interface StartedFolder {
  readonly node: number;
  readonly folder?: string;
}

/** While a node reports, no copy of its folder takes its place. */
export async function checkRunning(manager: RefusingManager, started: StartedFolder, known: NodeRecord): Promise<void> {
  const { node, folder } = started;
  if (!isElsewhere(started, known) || !manager.live.isHeard(node)) return;
  const reason = `node ${node} runs with the folder ${known.folder}, so ${folder} is a copy of it; do not start it (to move a node, end it first, and wait until 'extents status' lists it as down)`;
  await noteRefusal(manager, started, reason);
  throw new RpcError('CONFLICT', reason);
}

function isElsewhere({ folder }: StartedFolder, known: NodeRecord): boolean {
  return folder !== undefined && known.folder !== undefined && folder !== known.folder;
}

export async function refuseFolder(manager: RefusingManager, started: StartedFolder, why: string): Promise<RpcError> {
  const refused = `the folder of node ${started.node} is an older copy: ${why}; start the node with the latest folder; if that is lost, empty it, and the cluster fills it again (if no other replicas are left: 'extents node --trust-folder' uses it as it is)`;
  await noteRefusal(manager, started, refused);
  return new RpcError('CONFLICT', refused);
}

/**
 * Until the node joins or reports with the latest folder and journal, its replicas count as lost. A folder in another
 * place than the one that the node ran with is a copy: the original may be live, or only down, and still counts.
 */
export async function noteRefusal(
  { counters, parts, schema }: RefusingManager,
  started: StartedFolder,
  reason: string,
): Promise<void> {
  await parts.confirmLead(); // Otherwise the metadata may be older than the folder.
  counters.refusedDisks++;
  const { node, folder } = started;
  const known = await schema.node(node);
  if (known === undefined) return;
  const { key, version, value } = known;
  const noted: Partial<NodeRecord> = isElsewhere(started, value)
    ? {
        copy: `a copy of the folder of node ${node} was refused at ${folder}; its own folder is ${value.folder}: ${reason}`,
      }
    : { refused: reason };
  const changed = { ...value, ...noted };
  if (changed.copy === value.copy && changed.refused === value.refused) return;
  await schema.commit([{ key, version, value: changed }]);
}
