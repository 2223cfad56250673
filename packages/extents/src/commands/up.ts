import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ChildService,
  CommandFailure,
  defineDocument,
  EXIT_INTERRUPTED,
  type NicFlags,
  nicOf,
  type Output,
  orInterrupted,
  type SecureFlags,
  secureFlagsOf,
  untilInterrupted,
} from '@rocev2/command';
import { NS_PER_MS, NS_PER_S, RoceError } from 'rocev2/internal/core';
import { makeFolder, nowNs, removeIfEmpty, unusableFolder } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import type { ExtentTransport, ServeManagerOptions } from '../index.js';
import { MANAGER_PORT } from './cluster.js';
import { type CodeOptions, codingOf, nodesFor } from './code-options.js';
import { type EtcdPlace, etcdAccessOf } from './etcd-place.js';
import { Family, type Relative } from './family.js';
import type { ManagerService } from './manager-process.js';
import type { NodeService } from './node-process.js';
import { watchMetadata } from './watch-metadata.js';

const EXTENTS_UP_DOCUMENT = defineDocument<ExtentsUpResult>('extents-up');

const ENDING_MS = 10_000;
const NODES = 5;
const PORTS_OF_ONE = 2;
const PORT_MAX = 65_535;

type MetadataPlace = Pick<ServeManagerOptions, 'folder' | 'etcd' | 'etcdAccess'>;

export interface UpOptions extends NicFlags, SecureFlags, CodeOptions {
  readonly nodes?: number;
  readonly dir: string;
  readonly journal?: string;
  /** Bytes of a journal that is made. */
  readonly journalSize: number;
  /** Nanoseconds. */
  readonly keepDeleted: number;
  readonly managers?: number;
  readonly metadata?: EtcdPlace;
  readonly port: number;
  readonly bind: IpAddress;
  readonly extentSize: number;
  readonly transport: ExtentTransport;
  readonly restart?: boolean;
  readonly estats?: boolean;
}

/** The fields of `extents up --json`. */
export interface ExtentsUpResult {
  /** The manager, `HOST:PORT`; several with commas. */
  readonly manager: string;
  /** Name of the cluster: 32 hexadecimal digits. */
  readonly cluster: string;
  /** Nodes that were started. */
  readonly nodes: number;
  /** Processes that died before Ctrl-C. */
  readonly deaths: number;
  /** Time until Ctrl-C. */
  readonly seconds: number;
}

interface Started {
  readonly managers: readonly string[];
  readonly cluster: string;
}

export async function runUp(options: UpOptions, output: Output): Promise<void> {
  const nodes = numberOfNodes(options);
  checkManagers(options);
  const etcd = options.metadata && {
    etcd: options.metadata.endpoints,
    etcdAccess: await etcdAccessOf(options.metadata),
  };
  const made = [
    ...(await makeFolder(options.dir)),
    ...(options.journal === undefined ? [] : await makeFolder(options.journal)),
  ];
  await checkFolder(options.dir, nodes, output);
  output.io.allowAfterInterruption?.(ENDING_MS);
  const family = new Family(output, options.restart ?? false);
  try {
    const starting = startAll(options, { nodes, family, metadata: etcd ?? { folder: join(options.dir, 'manager') } });
    const started = await orInterrupted(starting, output.io.interrupted);
    if (started === undefined) throw new CommandFailure(EXIT_INTERRUPTED);
    const manager = started.managers.join();
    printUses(manager, output, options.psk);
    output.ready();
    const startNs = nowNs();
    await untilInterrupted(output.io.interrupted);
    const seconds = (nowNs() - startNs) / NS_PER_S;
    const { cluster } = started;
    output.document(EXTENTS_UP_DOCUMENT, { manager, cluster, nodes, deaths: family.deaths, seconds });
  } finally {
    await family.end();
    await removeIfEmpty(made);
  }
}

async function startAll(
  options: UpOptions,
  { nodes, family, metadata }: { readonly nodes: number; readonly family: Family; readonly metadata: MetadataPlace },
): Promise<Started> {
  const {
    dir,
    journal,
    journalSize: journalBytes,
    keepDeleted,
    bind,
    extentSize: extentBytes,
    transport,
    estats = false,
    managers: count = 1,
  } = options;
  const common = { bind: bind.text, transport, estats, ...nicOf(options), secure: secureFlagsOf(options) };
  const keepDeletedMs = Math.ceil(keepDeleted / NS_PER_MS);
  const managers: string[] = [];
  for (let k = 0; k < count; k++) {
    let port = options.port === 0 ? 0 : options.port + k * PORTS_OF_ONE;
    const name = count === 1 ? 'the manager' : `manager ${k + 1}`;
    const { address } = await family.start('manager', name, () => {
      const process = new ChildService<ManagerService>(name, new URL('./manager-process.js', import.meta.url));
      const watch = watchMetadata(() => process.call('trouble', {}), family.output).unref();
      process.died.catch(() => clearInterval(watch));
      const started = process.call('start', { ...common, ...metadata, port, extentBytes, ...codingOf(options) });
      return { process: process as Relative, started, words: (at) => `${name} is at ${at.address}` };
    });
    managers.push(address);
    port = Number(/\d+$/.exec(address)![0]);
  }
  const startNode = async (k: number) => {
    const folder = folderOf(dir, k);
    const own = journal === undefined ? {} : { journal: { journal: join(journal, `node${k}.journal`), journalBytes } };
    const node = await family.start('node', `node${k}`, () => {
      const process = new ChildService<NodeService>(`node${k}`, new URL('./node-process.js', import.meta.url));
      const started = process.call('start', { ...common, ...own, folder, keepDeletedMs, manager: managers.join() });
      const words = (at: { node: number; address: string; cluster: string }) =>
        `node ${at.node} is at ${at.address}, in ${folder}`;
      return { process: process as Relative, started, words };
    });
    return node.cluster;
  };
  // A manager with an older copy of its metadata lets no node join, and needs all of them to rebuild it. New nodes get
  // their numbers in order.
  const all = Array.from({ length: nodes }, (_, k) => k + 1);
  const isFilled = await Promise.all(all.map((k) => hasFiles(folderOf(dir, k))));
  const clusters = await Promise.all(all.filter((k) => isFilled[k - 1]).map(startNode));
  for (const k of all.filter((one) => !isFilled[one - 1])) clusters.push(await startNode(k));
  return { managers, cluster: clusters[0] };
}

function folderOf(dir: string, node: number): string {
  return join(dir, `node${node}`);
}

async function hasFiles(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => []);
  return names.length > 0;
}

function checkManagers({ managers = 1, metadata, port }: UpOptions): void {
  if (managers > 1 && metadata === undefined)
    throw new RoceError(
      'ERR_ROCE_MISMATCH',
      `${managers} managers keep their metadata in etcd, and --metadata is missing`,
      'add --metadata etcd:http://HOST:PORT, or leave --managers out',
    );
  if (port + managers * PORTS_OF_ONE - 1 > PORT_MAX)
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${managers} managers from port ${port} on`, 'name a smaller --port');
}

function numberOfNodes({ code, nodes }: UpOptions): number {
  const needed = nodesFor(code);
  if (nodes === undefined) return Math.max(NODES, needed);
  if (nodes >= needed) return nodes;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `${code} needs ${needed} nodes, one for each fragment of an extent, and not ${nodes}`,
    'raise --nodes, or leave it out',
  );
}

function printUses(managers: string, output: Output, psk: string | undefined): void {
  const isUsual = managers === `127.0.0.1:${MANAGER_PORT}`;
  const where = `${isUsual ? '' : ` --manager ${managers}`}${psk === undefined ? '' : ` --psk ${psk}`}`;
  const disk = where === '' ? 'stream:vol' : `stream:vol@${managers}`;
  output.line('the cluster is up; to use it:');
  output.line(`  echo hello | rocev2 extents append log${where}`);
  output.line(`  rocev2 extents read log${where}`);
  output.line(`  rocev2 extents status${where}`);
  output.line(`  rocev2 extents disk create vol --size 1GiB${where}`);
  output.line(`  rocev2 disk nbd --backend ${disk} --listen unix:/tmp/vol.sock`);
}

/** Refuses a folder that has something else, so that nothing is mixed. */
async function checkFolder(dir: string, nodes: number, output: Output): Promise<void> {
  let names: string[];
  try {
    names = await readdir(dir);
  } catch (cause) {
    throw unusableFolder(dir, cause);
  }
  const foreign = names.find((name) => !/^(manager|node[1-9]\d*|journals|lost\+found)$/.test(name));
  if (foreign !== undefined) {
    const hint = 'name an empty folder, or one that this command has made';
    throw new RoceError('ERR_ROCE_MISMATCH', `${dir} is not the folder of a cluster: it has '${foreign}'`, hint);
  }
  const numbers = names.map((name) => Number(/^node(\d+)$/.exec(name)?.[1] ?? 0));
  const most = Math.max(0, ...numbers);
  if (most > nodes) output.note(`${dir} has ${most} nodes, and ${nodes} are started: the others are down`);
}
