/** A stream manager on sockets, with its metadata in a folder. */

import { checkKind, checkOptions, checkWhole, type OptionNames } from '../../core/arguments.js';
import { systemRandom } from '../../driver/system-random.js';
import type { RdmaDevice } from '../../verbs/device.js';
import { CODE_NAMES, type CodeName } from '../coding/erasure-code.js';
import { LogMetadata } from '../log-metadata.js';
import type { ClusterStatus } from '../messages.js';
import { StreamManager } from '../stream-manager.js';
import { Upkeep } from '../upkeep.js';
import { Closing } from './closing.js';
import { FolderFiles } from './folder-files.js';
import { checkTransport, type ExtentTransport, Peers, placeText } from './peers.js';
import { ServiceDoor } from './service-door.js';
import { handlersOf, MANAGER_SERVICE } from './services.js';
import { MANAGER_TIMING } from './timing.js';

const EXTENT_BYTES = 64 << 20;
const EXTENT_BYTES_MIN = 1 << 20;
const EXTENT_BYTES_MAX = 2 ** 40;
const CODE_AFTER_MS_MAX = 2 ** 40;

/** What {@link serveManager} takes. */
export interface ServeManagerOptions {
  /** Nodes and clients reach the manager at the address of this device. */
  readonly device: RdmaDevice;
  /** Folder of its metadata; made if it is not there. */
  readonly folder: string;
  /** TCP port; 0 lets the system choose. Nodes and clients find the manager by it, also after it has been started anew. */
  readonly port: number;
  /** TCP address to listen on, default the device's. */
  readonly host?: string;
  /** Bytes of records after which another extent begins, 1 MiB to 1 TiB. Default 64 MiB. */
  readonly extentBytes?: number;
  /** What extents are coded with some time after they were sealed: `rs-6-3` needs nine nodes, `lrc-12-2-2` sixteen. Default: they stay on three nodes. */
  readonly code?: CodeName;
  /** That time, milliseconds. Default 60,000. */
  readonly codeAfterMs?: number;
  /** How it reaches nodes. Default `auto`: RDMA, and TCP where that fails. Others reach it both ways. */
  readonly transport?: ExtentTransport;
}

const OPTIONS: OptionNames<ServeManagerOptions> = {
  device: true,
  folder: true,
  port: true,
  host: true,
  extentBytes: true,
  code: true,
  codeAfterMs: true,
  transport: true,
};

/** A manager at work; made by {@link serveManager}. */
export class ManagerServer implements AsyncDisposable {
  /** Where others reach it, `HOST:PORT`. */
  readonly address: string;
  readonly #manager: StreamManager;
  readonly #closing: Closing;

  /** @internal */
  constructor(address: string, manager: StreamManager, closing: Closing) {
    this.address = address;
    this.#manager = manager;
    this.#closing = closing;
  }

  /** The cluster as the manager knows it. */
  status(): Promise<ClusterStatus> {
    return this.#manager.handle('status', {});
  }

  /** Ends the manager. Nodes, and owners and readers of extents that they know, go on without it. */
  close(): Promise<void> {
    return this.#closing.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Serves the manager of a cluster, a new one in an empty folder. Rejects as `listen` does, with ERR_ROCE_BUSY while another process has the folder, ERR_ROCE_IO,
 * ERR_ROCE_MISMATCH if the folder has something else, and ERR_ROCE_MALFORMED if its metadata is damaged.
 */
export async function serveManager(options: ServeManagerOptions): Promise<ManagerServer> {
  checkOptions('serveManager', options, OPTIONS);
  const { device, folder, port, host = options.device.address.text, extentBytes = EXTENT_BYTES, code } = options;
  const { codeAfterMs = MANAGER_TIMING.codeAfterMs, transport } = options;
  checkKind('folder', folder, typeof folder === 'string' && folder !== '', 'a path');
  checkWhole('extentBytes', extentBytes, EXTENT_BYTES_MIN, EXTENT_BYTES_MAX);
  if (code !== undefined) checkKind('code', code, CODE_NAMES.includes(code), CODE_NAMES.join(' or '));
  checkWhole('codeAfterMs', codeAfterMs, 0, CODE_AFTER_MS_MAX);
  checkTransport(transport);
  const { clock } = device;
  const timing = { ...MANAGER_TIMING, codeAfterMs };
  const closing = new Closing();
  return closing.unlessFailed(async () => {
    const files = closing.use(await FolderFiles.open(folder));
    const metadata = await LogMetadata.open(files, clock);
    closing.defer(() => metadata.close());
    const peers = closing.use(new Peers(device, transport));
    const parts = { metadata, nodes: peers.nodes, clock, random: systemRandom(), timing, extentBytes };
    const manager = new StreamManager(parts);
    await manager.start();
    const door = closing.use(await ServiceDoor.open(device, { host, port }));
    const handle = (method: string, request: object) => manager.handle(method as never, request as never);
    door.serve(MANAGER_SERVICE, handlersOf(MANAGER_SERVICE, handle));
    const upkeep = new Upkeep(manager, code);
    upkeep.start();
    closing.defer(() => upkeep.stop());
    return new ManagerServer(placeText(host, door.port), manager, closing);
  });
}
