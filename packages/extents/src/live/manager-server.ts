import { randomUUID } from 'node:crypto';
import { checkKind, checkOptions, checkWhole, formatHostPort, type OptionNames } from 'rocev2/internal/core';
import { systemRandom, wallMs } from 'rocev2/internal/driver';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { Candidate } from '../candidate.js';
import { CODE_NAMES, type CodeName } from '../coding/erasure-code.js';
import { type Leader, leaderOf } from '../leader.js';
import { LEADER_KEY } from '../leader-metadata.js';
import { LogMetadata } from '../log-metadata.js';
import type { ManagerParts } from '../manager-state.js';
import type { ClusterStatus, ManagerPlace } from '../messages.js';
import type { Metadata } from '../metadata.js';
import { MetadataSchema } from '../metadata-schema.js';
import { Closing } from './closing.js';
import { DualListener } from './dual-listener.js';
import type { EtcdAccess } from './etcd-access.js';
import { isEtcdEndpoint } from './etcd-gateway.js';
import { EtcdMetadata } from './etcd-metadata.js';
import { FolderFiles } from './folder-files.js';
import { checkTransport, type ExtentTransport } from './peer-connector.js';
import { Peers } from './peers.js';
import { handlersOf, MANAGER_SERVICE } from './services.js';
import { CANDIDATE_TIMING, MANAGER_TIMING } from './timing.js';

const EXTENT_BYTES = 64 << 20;
const EXTENT_BYTES_MIN = 1 << 20;
const EXTENT_BYTES_MAX = 2 ** 40;
const CODE_AFTER_MS_MAX = 2 ** 40;

/** Options of {@link serveManager}. */
export interface ServeManagerOptions {
  /** Nodes and clients reach the manager at the address of this device. */
  readonly device: RdmaDevice;
  /** Folder of its metadata; created if missing. Either this or `etcd`. */
  readonly folder?: string | undefined;
  /**
   * Members of an etcd, such as `http://10.0.0.1:2379`. Managers with the same one are of one cluster: one of them
   * leads.
   */
  readonly etcd?: readonly string[] | undefined;
  /** Credentials for etcd: certificates, a user. Default: none. */
  readonly etcdAccess?: EtcdAccess | undefined;
  /** TCP port; 0 lets the system choose. Nodes and clients find the manager by it, also after a restart. */
  readonly port: number;
  /** TCP address to listen on, default the device's. */
  readonly host?: string | undefined;
  /** Bytes of records after which another extent begins, 1 MiB to 1 TiB. Default 64 MiB. */
  readonly extentBytes?: number | undefined;
  /**
   * The code for extents some time after they were sealed: `rs-6-3` needs nine nodes, `lrc-12-2-2` sixteen.
   * Default: they stay on three nodes.
   */
  readonly code?: CodeName | undefined;
  /** That time, milliseconds. Default 60,000. */
  readonly codeAfterMs?: number | undefined;
  /**
   * The metadata is taken as the latest, even if few nodes confirm it; nodes that have seen a later state still stop
   * the manager. Default: the manager makes no decision before all nodes but two have reported, and at least two.
   */
  readonly trustMetadata?: boolean | undefined;
  /**
   * The metadata is lost: the manager of an empty folder adopts the cluster of the first node that joins. It makes no
   * decision before `recoverMetadata` of a client has rebuilt the metadata from the nodes.
   */
  readonly recover?: boolean | undefined;
  /** How it reaches nodes. Default `auto`: RDMA, and TCP where that fails. Others reach it both ways. */
  readonly transport?: ExtentTransport | undefined;
  /** Takes the first refused connection, as one line. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

const OPTIONS: OptionNames<ServeManagerOptions> = {
  device: true,
  folder: true,
  etcd: true,
  etcdAccess: true,
  port: true,
  host: true,
  extentBytes: true,
  code: true,
  codeAfterMs: true,
  trustMetadata: true,
  recover: true,
  transport: true,
  onNotice: true,
};

/** A running manager; made by {@link serveManager}. */
export class ManagerServer implements AsyncDisposable {
  /** Its address for nodes and clients, `HOST:PORT`. */
  readonly address: string;
  readonly #manager: Answering;
  readonly #store: Metadata;
  readonly #closing: Closing;

  /** @internal */
  constructor(address: string, { manager, store }: { manager: Answering; store: Metadata }, closing: Closing) {
    this.address = address;
    this.#manager = manager;
    this.#store = store;
    this.#closing = closing;
  }

  /** Whether it leads; only one of several managers does. */
  get isLeading(): boolean {
    return this.#manager.isLeading;
  }

  /** Name of the cluster. Undefined: no manager has led so far. */
  clusterName(): Promise<string | undefined> {
    return new MetadataSchema(this.#store).clusterName();
  }

  /**
   * The cluster as known to the manager. Rejects with ERR_ROCE_REMOTE (`NOT_LEADER`) if another one leads, or none does
   * yet.
   */
  status(): Promise<ClusterStatus> {
    return this.#manager.handle('status', {});
  }

  /**
   * Why requests are refused: the metadata is an older copy, or too few nodes have confirmed that it is the latest.
   * Undefined: they are not, or this manager does not lead.
   */
  async trouble(): Promise<string | undefined> {
    return this.isLeading ? (await this.status()).metadata.reason : undefined;
  }

  /** Stops the manager. Nodes, and owners and readers of known extents, continue without it. */
  close(): Promise<void> {
    return this.#closing.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

type Answering = Pick<Leader, 'handle'> & { readonly isLeading: boolean };

type Common = Omit<ManagerParts, 'metadata' | 'confirmLead' | 'managers'>;

/**
 * Serves the manager of a cluster, a new one in an empty folder; or one of several over an etcd, which resolves before
 * it leads. Rejects as `listen` does, with ERR_ROCE_BUSY while another process has the folder, and ERR_ROCE_IO. Rejects
 * with ERR_ROCE_MISMATCH if the folder has other content, ERR_ROCE_MALFORMED if its metadata is damaged, and
 * ERR_ROCE_CONNECT if no member of etcd answers.
 */
export async function serveManager(options: ServeManagerOptions): Promise<ManagerServer> {
  checkOptions('serveManager', options, OPTIONS);
  checkKind('device', options.device, typeof options.device?.createPd === 'function', 'a device of openDevice()');
  const { device, folder, etcd, port, host = options.device.address.text, extentBytes = EXTENT_BYTES, code } = options;
  const { codeAfterMs = MANAGER_TIMING.codeAfterMs, transport, etcdAccess: access = {}, trustMetadata } = options;
  const { recover } = options;
  checkKind('folder', folder, etcd !== undefined || (typeof folder === 'string' && folder !== ''), 'a path');
  if (etcd !== undefined) checkEndpoints(etcd, folder);
  checkWhole('extentBytes', extentBytes, EXTENT_BYTES_MIN, EXTENT_BYTES_MAX);
  if (code !== undefined) checkKind('code', code, CODE_NAMES.includes(code), CODE_NAMES.join(' or '));
  checkWhole('codeAfterMs', codeAfterMs, 0, CODE_AFTER_MS_MAX);
  checkKind(
    'trustMetadata',
    trustMetadata,
    trustMetadata === undefined || typeof trustMetadata === 'boolean',
    'a boolean',
  );
  checkKind('recover', recover, recover === undefined || typeof recover === 'boolean', 'a boolean');
  checkTransport(transport);
  const { onNotice } = options;
  checkKind('onNotice', onNotice, onNotice === undefined || typeof onNotice === 'function', 'a function');
  const { clock } = device;
  const timing = { ...MANAGER_TIMING, codeAfterMs };
  const closing = new Closing();
  return closing.unlessFailed(async () => {
    const files = folder === undefined ? undefined : closing.use(await FolderFiles.open(folder));
    // Before the store: where the port is taken, no cluster begins in an empty folder.
    const listener = closing.use(await DualListener.open(device, { host, port }, { onNotice }));
    const store =
      files === undefined
        ? new EtcdMetadata(clock, { endpoints: etcd!, access })
        : await files.named(LogMetadata.open(files, clock));
    closing.defer(() => store.close());
    if (files === undefined) await store.get(LEADER_KEY);
    const peers = closing.use(Peers.of(device, transport));
    const common = {
      nodes: peers.nodes,
      clock,
      random: systemRandom(),
      timing,
      extentBytes,
      code,
      trustsMetadata: trustMetadata,
      isRecovering: recover,
    };
    const address = formatHostPort(host, listener.port);
    const begin = files === undefined ? campaign : leadAlone;
    const manager = await begin({ store, address, common, closing });
    const handle = (method: string, request: object) => manager.handle(method as never, request as never);
    listener.serve(MANAGER_SERVICE, handlersOf(MANAGER_SERVICE, handle));
    return new ManagerServer(address, { manager, store }, closing);
  });
}

interface Beginning {
  readonly store: Metadata;
  readonly address: string;
  readonly common: Common;
  readonly closing: Closing;
}

async function leadAlone({ store, address, common, closing }: Beginning): Promise<Answering> {
  const only: ManagerPlace = { address, leads: true, since: new Date(wallMs()).toISOString() };
  const parts = { ...common, metadata: store, confirmLead: async () => {}, managers: async () => [only] };
  const leader = leaderOf(parts);
  closing.defer(() => leader.stop());
  await leader.start();
  return { isLeading: true, handle: leader.handle };
}

async function campaign({ store, address, common, closing }: Beginning): Promise<Answering> {
  const { clock } = common;
  const candidate: Candidate = new Candidate({
    store,
    clock,
    address,
    life: randomUUID(),
    timing: CANDIDATE_TIMING,
    wallMs,
    lead: (metadata) => {
      const confirmLead = () => metadata.confirm();
      return leaderOf({ ...common, metadata, confirmLead, managers: () => candidate.managers() });
    },
  });
  closing.defer(() => candidate.stop());
  candidate.start();
  return candidate;
}

function checkEndpoints(etcd: readonly string[], folder: string | undefined): void {
  const isList = Array.isArray(etcd) && etcd.length > 0 && etcd.every(isEtcdEndpoint);
  checkKind('etcd', etcd, isList, 'a list of http://HOST:PORT');
  checkKind('folder', folder, folder === undefined, 'undefined where there is etcd: it has the metadata');
}
