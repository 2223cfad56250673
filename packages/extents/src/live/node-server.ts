import { RpcError } from '@rocev2/rpc';
import {
  checkKind,
  checkOptions,
  checkWhole,
  formatHostPort,
  NS_PER_MS,
  type OptionNames,
  pause,
} from 'rocev2/internal/core';
import { offerCrc32c, systemRandom } from 'rocev2/internal/driver';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { ExtentNode, type NodeCounters } from '../extent-node.js';
import type { ExtentStore } from '../extent-store.js';
import type { JournalUse } from '../journal.js';
import { openStore } from '../open-store.js';
import { Closing } from './closing.js';
import { openCoder } from './coder.js';
import { DualListener } from './dual-listener.js';
import { FolderFiles } from './folder-files.js';
import { JOURNAL_BYTES, JOURNAL_BYTES_MAX, JOURNAL_BYTES_MIN, JournalFile } from './journal-file.js';
import { checkTransport, type ExtentTransport } from './peer-connector.js';
import { askManager, isWithoutManager, Peers } from './peers.js';
import { handlersOf, NODE_SERVICE } from './services.js';
import { NODE_TIMING } from './timing.js';

const KEEP_DELETED_MS_MAX = 2 ** 40;

/** Options of {@link serveNode}. */
export interface ServeNodeOptions {
  /** Others reach the node at the address of this device, which is reported to the manager. */
  readonly device: RdmaDevice;
  /**
   * Folder of its extents; created if missing. A new one gets a number from the manager, and belongs to that
   * cluster from then on.
   */
  readonly folder: string;
  /** The manager, `HOST:PORT`; of several managers one or more, with commas between them. */
  readonly manager: string;
  /** TCP port; 0 lets the system choose. Default 0: peers learn it from the manager. */
  readonly port?: number | undefined;
  /** TCP address to listen on, default the device's. */
  readonly host?: string | undefined;
  /**
   * Nodes of one fault domain may fail together: the replicas of an extent go to several, as far as there are any.
   * Default: a separate domain.
   */
  readonly domain?: string | undefined;
  /**
   * File of its journal, or a block device: changes of all extents go there first, one sync for all of them. A missing
   * file is created. Default: none, and each extent is synced in its own file.
   */
  readonly journal?: string | undefined;
  /** Bytes of a new journal, 1 MiB to 1 TiB; default 64 MiB. */
  readonly journalBytes?: number | undefined;
  /**
   * How long files stay in the folder after the manager has requested their deletion, milliseconds. They are removed
   * sooner if they occupy more bytes than are free. Default 3,600,000: an hour.
   */
  readonly keepDeletedMs?: number | undefined;
  /**
   * Joins although the folder is an older copy, and starts without the journal that it had: its replicas that were open
   * may lack acknowledged records. Default false.
   */
  readonly trustFolder?: boolean | undefined;
  /**
   * How it reaches the manager and other nodes. Default `auto`: RDMA, and TCP where that fails. Others reach it both
   * ways, TCP at the port after that of the exchange.
   */
  readonly transport?: ExtentTransport | undefined;
  /** Takes the first refused connection, as one line. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

const OPTIONS: OptionNames<ServeNodeOptions> = {
  device: true,
  folder: true,
  manager: true,
  port: true,
  host: true,
  domain: true,
  journal: true,
  journalBytes: true,
  keepDeletedMs: true,
  trustFolder: true,
  transport: true,
  onNotice: true,
};

/** A running node; made by {@link serveNode}. */
export class NodeServer implements AsyncDisposable {
  /** Its address for peers, `HOST:PORT`. */
  readonly address: string;
  readonly #node: ExtentNode;
  readonly #store: ExtentStore;
  readonly #closing: Closing;

  /** @internal */
  constructor(address: string, node: ExtentNode, store: ExtentStore, closing: Closing) {
    this.address = address;
    this.#node = node;
    this.#store = store;
    this.#closing = closing;
  }

  /** Its number in the cluster. */
  get node(): number {
    return this.#node.node;
  }

  /** Name of the cluster. */
  get cluster(): string {
    return this.#store.identity.cluster;
  }

  /** Replicas that it has. */
  get replicas(): number {
    return this.#store.reports().length;
  }

  /** Fragments that it has. */
  get fragments(): number {
    return this.#store.fragments.complete().length;
  }

  /**
   * Why it takes no more data, such as `the disk is full`: it is then read-only until restarted. Undefined: it takes
   * data.
   */
  get readOnly(): string | undefined {
    return this.#store.readOnly;
  }

  /** How full its journal is. Undefined: it has none. */
  get journal(): JournalUse | undefined {
    return this.#store.journal;
  }

  /** Counters so far. */
  counters(): NodeCounters {
    return { ...this.#node.counters };
  }

  /** Stops the node. Its extents are available again after a restart. */
  close(): Promise<void> {
    return this.#closing.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Serves an extent node, and resolves when it has joined the cluster. It waits for a manager indefinitely, until the
 * device is closed. Rejects as `listen` does, with ERR_ROCE_BUSY while another process has the folder, and ERR_ROCE_IO.
 * Rejects with ERR_ROCE_MISMATCH if the folder has other content, or another journal than before; ERR_ROCE_MALFORMED if
 * it does not name its node. Rejects with ERR_ROCE_REMOTE if it belongs to another cluster, or is an older copy.
 */
export async function serveNode(options: ServeNodeOptions): Promise<NodeServer> {
  checkOptions('serveNode', options, OPTIONS);
  checkKind('device', options.device, typeof options.device?.createPd === 'function', 'a device of openDevice()');
  offerCrc32c();
  const { device, folder, manager: managerAddress, port = 0, host = options.device.address.text } = options;
  const { transport, journal, journalBytes = JOURNAL_BYTES } = options;
  const { keepDeletedMs = NODE_TIMING.keepDeletedMs, trustFolder = false } = options;
  checkKind('folder', folder, typeof folder === 'string' && folder !== '', 'a path');
  checkKind('manager', managerAddress, typeof managerAddress === 'string', 'HOST:PORT');
  checkTransport(transport);
  const { onNotice } = options;
  checkKind('onNotice', onNotice, onNotice === undefined || typeof onNotice === 'function', 'a function');
  if (journal !== undefined) checkKind('journal', journal, typeof journal === 'string' && journal !== '', 'a path');
  checkWhole('journalBytes', journalBytes, JOURNAL_BYTES_MIN, JOURNAL_BYTES_MAX);
  checkWhole('keepDeletedMs', keepDeletedMs, 0, KEEP_DELETED_MS_MAX);
  checkKind('trustFolder', trustFolder, typeof trustFolder === 'boolean', 'a boolean');
  const { clock } = device;
  const random = systemRandom();
  const timing = { ...NODE_TIMING, keepDeletedMs };
  const closing = new Closing();
  return closing.unlessFailed(async () => {
    const files = closing.use(await FolderFiles.open(folder));
    const peers = closing.use(Peers.of(device, transport));
    const { nodes } = peers;
    const manager = peers.manager(managerAddress);
    const registerNode = async () => {
      for (;;) {
        try {
          return await askManager(managerAddress, manager.call('introduce', {}, timing.callMs));
        } catch (error) {
          if (device.isClosed || !isWithoutManager(error)) throw error;
          await pause(clock, timing.reportMs * NS_PER_MS);
        }
      }
    };
    const journalFile = journal === undefined ? undefined : closing.use(await JournalFile.open(journal, journalBytes));
    const journalDevice = journalFile && { file: journalFile, clock, random };
    const place = `${host}:${await files.path()}`;
    const asked = { manager, callMs: timing.callMs, registerNode };
    const storeParts = { files, folder: place, ...asked, trustsFolder: trustFolder };
    const store = await files.named(openStore({ ...storeParts, journal: journalDevice }));
    closing.defer(() => store.close());
    const listener = closing.use(await DualListener.open(device, { host, port }, { onNotice }));
    const address = formatHostPort(host, listener.port);
    const { domain = `node ${store.identity.node}` } = options;
    const combiner = openCoder();
    closing.defer(() => combiner.close());
    const own = { address, domain, folder: place, trustsFolder: trustFolder };
    const node = new ExtentNode({ store, nodes, manager, combiner, clock, random, timing, ...own });
    const handle = async (method: string, request: { readonly to?: number }) => {
      if (request.to === node.node) return node.handle(method as never, request as never) as Promise<object>;
      throw new RpcError('UNREACHABLE', `node ${node.node} is here now, and not node ${request.to}`);
    };
    listener.serve(NODE_SERVICE, handlersOf(NODE_SERVICE, handle));
    closing.defer(() => node.stop());
    await node.start();
    return new NodeServer(address, node, store, closing);
  });
}
