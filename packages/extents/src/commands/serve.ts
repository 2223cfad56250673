import {
  type Copies,
  counted,
  defineDocument,
  estatsOf,
  localAddressTowards,
  type NicFlags,
  nicOf,
  type Output,
  orInterrupted,
  reportCopies,
  type SecureFlags,
  secureOf,
  type TelemetryFlags,
  untilInterrupted,
} from '@rocev2/command';
import { formatBytes, type HostPort, NS_PER_MS, NS_PER_S, RoceError } from 'rocev2/internal/core';
import { isLoopback } from 'rocev2/internal/dgram-ext';
import { nowNs } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import {
  type ExtentTransport,
  type NodeCounters,
  type NodeServer,
  type ServeManagerOptions,
  serveManager,
  serveNode,
} from '../index.js';
import { managerAddress } from './cluster.js';
import { type CodeOptions, codingOf } from './code-options.js';
import { type EtcdPlace, etcdAccessOf } from './etcd-place.js';
import { serveClusterDocument } from './telemetry.js';
import { WATCH_MS, watchMetadata } from './watch-metadata.js';

const EXTENTS_MANAGER_DOCUMENT = defineDocument<ExtentsManagerResult>('extents-manager');
const EXTENTS_NODE_DOCUMENT = defineDocument<ExtentsNodeResult>('extents-node');

const TIMEOUT_MS = 3000;
const NO_ANSWER = 'no leading manager has answered yet; the node retries until Ctrl-C, at';

export interface ManagerOptions extends NicFlags, SecureFlags, TelemetryFlags, CodeOptions {
  readonly dir?: string;
  readonly metadata?: EtcdPlace;
  readonly port: number;
  readonly bind: IpAddress;
  readonly extentSize: number;
  readonly transport: ExtentTransport;
  readonly trustMetadata?: boolean;
  readonly recover?: boolean;
}

export interface NodeOptions extends NicFlags, SecureFlags, TelemetryFlags {
  readonly dir: string;
  readonly journal?: string;
  /** Bytes of a journal that is made. */
  readonly journalSize: number;
  /** Nanoseconds. */
  readonly keepDeleted: number;
  readonly trustFolder?: boolean;
  readonly join: readonly HostPort[];
  readonly domain?: string;
  readonly port: number;
  readonly bind?: IpAddress;
  readonly transport: ExtentTransport;
}

/** The fields of `extents manager --json`. */
export interface ExtentsManagerResult {
  /** `HOST:PORT`. */
  readonly address: string;
  /** Name of the cluster: 32 hexadecimal digits; missing if no manager has led so far. */
  readonly cluster?: string;
  /** Whether this manager led in the end. */
  readonly leads: boolean;
  /** Time until Ctrl-C. */
  readonly seconds: number;
}

/** The fields of `extents node --json`. */
export interface ExtentsNodeResult extends NodeCounters {
  /** Its number. */
  readonly node: number;
  /** `HOST:PORT`. */
  readonly address: string;
  /** Name of the cluster: 32 hexadecimal digits. */
  readonly cluster: string;
  /** Replicas at the end. */
  readonly replicas: number;
  /** Fragments at the end. */
  readonly fragments: number;
  /** Time until Ctrl-C. */
  readonly seconds: number;
  /** What it did by copies to mapped regions of its peers. */
  readonly copies: Copies;
}

/** What every program of a cluster opens its device with. */
async function nicOptions(options: NicFlags & SecureFlags & TelemetryFlags) {
  return { udpPort: 0, ...nicOf(options), estats: estatsOf(options), ...(await secureOf(options)) };
}

export async function runManager(options: ManagerOptions, output: Output): Promise<void> {
  const { port, bind, extentSize: extentBytes, transport, estats = false } = options;
  const { trustMetadata = false, recover = false } = options;
  const place = await metadataPlace(options);
  const nic = await nicOptions(options);
  await using device = await openDevice({ address: bind.text, ...nic });
  const onNotice = (notice: string) => output.note(notice);
  const own = { port, extentBytes, transport, trustMetadata, recover, onNotice, ...codingOf(options) };
  await using manager = await serveManager({ device, ...place, ...own });
  await using _telemetry = await serveClusterDocument(manager, estats);
  if (manager.isLeading) {
    const { cluster, nodes } = await manager.status();
    output.note(`cluster ${cluster}, ${nodes.length} nodes known`);
  } else output.note(`one of the managers over ${place.etcd!.join(', ')}; the first one leads`);
  output.note(`listening on ${manager.address}`);
  output.ready();
  const startNs = nowNs();
  const watch = watchMetadata(() => manager.trouble(), output);
  await untilInterrupted(output.io.interrupted);
  clearInterval(watch);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  const cluster = await manager.clusterName().catch(() => undefined); // etcd may be unreachable by now.
  const { address, isLeading: leads } = manager;
  output.document(EXTENTS_MANAGER_DOCUMENT, { address, ...(cluster !== undefined && { cluster }), leads, seconds });
}

async function metadataPlace({
  dir,
  metadata,
}: ManagerOptions): Promise<Pick<ServeManagerOptions, 'folder' | 'etcd' | 'etcdAccess'>> {
  if ((dir === undefined) === (metadata === undefined))
    throw new RoceError(
      'ERR_ROCE_MISMATCH',
      'there is only one copy of the metadata',
      'write --dir PATH, or --metadata etcd:URL',
    );
  if (metadata === undefined) return { folder: dir! };
  return { etcd: metadata.endpoints, etcdAccess: await etcdAccessOf(metadata) };
}

export async function runNode(options: NodeOptions, output: Output): Promise<void> {
  const { dir: folder, journal, journalSize: journalBytes, keepDeleted, join, port, bind, domain, transport } = options;
  const { trustFolder = false } = options;
  const nic = await nicOptions(options);
  const { host, text: manager } = await managerAddress(join);
  const address = await nodeAddress(host, bind);
  await using device = await openDevice({ address: address.text, ...nic });
  output.note(`joining the cluster of ${manager}`);
  const place = {
    folder,
    trustFolder,
    keepDeletedMs: Math.ceil(keepDeleted / NS_PER_MS),
    ...(domain !== undefined && { domain }),
    ...(journal !== undefined && { journal, journalBytes }),
  };
  const joining = serveNode({
    device,
    ...place,
    manager,
    port,
    transport,
    onNotice: (notice) => output.note(notice),
  });
  const waiting = setTimeout(() => output.note(`${NO_ANSWER} ${manager}`), TIMEOUT_MS);
  const node = await orInterrupted(joining, output.io.interrupted).finally(() => clearTimeout(waiting));
  if (node === undefined) return;
  await using _ = node;
  output.note(
    `node ${node.node} of cluster ${node.cluster}, ${counted(node.replicas, 'replica')}, ${counted(node.fragments, 'fragment')}, at ${node.address}`,
  );
  if (journal !== undefined) output.note(`journal ${journal}, ${formatBytes(node.journal!.bytes)}`);
  output.ready();
  const startNs = nowNs();
  const watch = watchWrites(node, output);
  await untilInterrupted(output.io.interrupted);
  clearInterval(watch);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  const { cluster, replicas, fragments } = node;
  const counters = node.counters();
  const { appends, reads, repaired } = counters;
  output.line(`${counted(appends, 'append')}, ${counted(reads, 'read')}, ${counted(repaired, 'record')} repaired`);
  output.document(EXTENTS_NODE_DOCUMENT, {
    node: node.node,
    address: node.address,
    cluster,
    replicas,
    fragments,
    seconds,
    ...counters,
    copies: reportCopies(output, device.counters()),
  });
}

async function nodeAddress(manager: IpAddress, bind: IpAddress | undefined): Promise<IpAddress> {
  if (bind === undefined) return localAddressTowards(manager);
  if (!isLoopback(bind) || isLoopback(manager)) return bind;
  const text = `no other machine reaches a node at ${bind}, and its manager is at ${manager}`;
  throw new RoceError('ERR_ROCE_MISMATCH', text, 'give the address of this machine by --bind, or leave it out');
}

function watchWrites(node: NodeServer, output: Output): NodeJS.Timeout {
  const watch = setInterval(() => {
    if (node.readOnly === undefined) return;
    output.warn(`read-only: ${node.readOnly}; its extents can still be read (repair the cause, then restart the node)`);
    clearInterval(watch);
  }, WATCH_MS);
  return watch;
}
