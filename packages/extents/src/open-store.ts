import { RoceError } from 'rocev2/internal/core';
import type { ExtentFiles } from './extent-files.js';
import { ExtentStore } from './extent-store.js';
import type { JournalDevice } from './journal.js';
import type { Manager, NewNode } from './messages.js';

/** What a node opens its folder with. */
export interface ExtentStoreParts {
  readonly files: ExtentFiles;
  readonly manager: Manager;
  /** Where the folder is, `HOST:PATH`. */
  readonly folder: string;
  readonly callMs: number;
  registerNode(): Promise<NewNode>;
  readonly journal?: JournalDevice | undefined;
  readonly trustsFolder?: boolean | undefined;
}

/**
 * As {@link ExtentStore.open}. If the folder and the journal do not belong together, the manager learns of it, and
 * `status` shows it.
 */
export async function openStore(parts: ExtentStoreParts): Promise<ExtentStore> {
  const { files, registerNode, journal, trustsFolder } = parts;
  try {
    return await ExtentStore.open(files, registerNode, journal, trustsFolder);
  } catch (error) {
    if (error instanceof RoceError && error.code === 'ERR_ROCE_MISMATCH') await reportRefusal(parts, error);
    throw error;
  }
}

async function reportRefusal({ files, manager, folder, callMs }: ExtentStoreParts, error: RoceError): Promise<void> {
  try {
    const own = await ExtentStore.identityIn(files);
    if (own === undefined) return;
    const { node, cluster } = own;
    const reason = `node ${node} does not start: ${error.message}`;
    await manager.call('refuse', { node, cluster, folder, reason }, callMs);
  } catch {
    // The folder cannot be read, or no manager answers: the node prints the error itself.
  }
}
