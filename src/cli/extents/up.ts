/** `rocev2 extents up`: a whole cluster as child processes, until Ctrl-C. */

import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RoceError } from '../../core/errors.js';
import { whyUnwritable } from '../../core/file-errors.js';
import { NS_PER_S } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import type { ExtentTransport } from '../../extents/index.js';
import type { IpAddress } from '../../packet/address.js';
import { ChildService } from '../../processes/child-service.js';
import { untilInterrupted } from '../interruption.js';
import type { NicOptions } from '../nic-options.js';
import type { Output } from '../output.js';
import { type SecureFlags, secureFlagsOf } from '../secure-options.js';
import { MANAGER_PORT } from './cluster.js';
import { type CodeOptions, codingOf, nodesFor } from './code-options.js';
import type { ManagerService } from './manager-process.js';
import type { NodeService } from './node-process.js';

/** Time after Ctrl-C in which all processes end in order. */
const ENDING_MS = 10_000;
/** Nodes of a cluster that codes nothing. */
const NODES = 5;
/** Before a process that has died is started anew. */
const RESTART_MS = 1000;

/** Options of `rocev2 extents up`. */
export interface UpOptions extends NicOptions, SecureFlags, CodeOptions {
  /** Number of nodes; default: five, or as many as the code needs. */
  readonly nodes?: number;
  /** Folder of the cluster. */
  readonly dir: string;
  /** TCP port of the manager; 0: the system chooses. */
  readonly port: number;
  /** IP address of all of them. */
  readonly bind: IpAddress;
  /** Bytes after which another extent begins. */
  readonly extentSize: number;
  /** What connections between them are made of. */
  readonly transport: ExtentTransport;
  /** Starts processes anew that die. */
  readonly restart?: boolean;
  /** Lets `rocev2 dashboard --attach` see the cluster, and the devices of all processes. */
  readonly estats?: boolean;
}

/** The fields of `extents up --json`. */
export interface ExtentsUpResult {
  /** The manager, `HOST:PORT`. */
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

/** What both kinds of processes have in common. */
interface Process {
  readonly died: Promise<never>;
  readonly pid: number | undefined;
  call(method: 'close', args: object): Promise<unknown>;
  stop(): Promise<void>;
}

/** The processes of a cluster. */
class Family {
  deaths = 0;
  readonly #running = new Set<Process>();
  readonly #output: Output;
  readonly #restart: boolean;
  #isEnding = false;

  constructor(output: Output, restart: boolean) {
    this.#output = output;
    this.#restart = restart;
  }

  /** Starts a process; from then on its death is reported, and it is started anew if that was asked for. */
  async start<T>(
    name: string,
    begin: () => { process: Process; started: Promise<T>; words: (value: T) => string },
  ): Promise<T> {
    const { process, started, words } = begin();
    this.#running.add(process);
    try {
      const value = await started;
      this.#output.note(`${words(value)}, process ${process.pid}`);
      process.died.catch((error: Error) => void this.#onDeath(name, process, error, begin));
      return value;
    } catch (error) {
      this.#running.delete(process);
      await process.stop();
      throw error;
    }
  }

  async #onDeath(
    name: string,
    process: Process,
    error: Error,
    begin: () => { process: Process; started: Promise<unknown>; words: (value: never) => string },
  ): Promise<void> {
    this.#running.delete(process);
    if (this.#isEnding) return;
    this.deaths++;
    this.#output.note(error.message);
    while (this.#restart && !this.#isEnding) {
      await delay(RESTART_MS);
      if (this.#isEnding) return;
      try {
        await this.start(name, begin as never);
        return;
      } catch (failure) {
        this.#output.note(`${name} cannot be started: ${(failure as Error).message}`);
      }
    }
  }

  /** Ends all processes in order: the nodes first, the manager last. */
  async end(): Promise<void> {
    this.#isEnding = true;
    const [manager, ...nodes] = this.#running;
    const close = async (process: Process) => {
      await process.call('close', {}).catch(() => {}); // It has died meanwhile.
      await process.stop();
    };
    await Promise.all(nodes.map(close));
    if (manager !== undefined) await close(manager);
  }
}

/** Runs until Ctrl-C, which is the normal end. */
export async function runUp(options: UpOptions, output: Output): Promise<void> {
  const { dir, port, bind, extentSize: extentBytes, restart = false, estats = false } = options;
  const { transport, io, engine, spin } = options;
  const nodes = numberOfNodes(options);
  await checkFolder(dir, nodes, output);
  output.io.allowAfterInterruption?.(ENDING_MS);
  const common = { bind: bind.text, transport, estats, io, engine, spin, secure: secureFlagsOf(options) };
  const family = new Family(output, restart);
  let managerPort = port;
  try {
    const { address, cluster } = await family.start('the manager', () => {
      const process = new ChildService<ManagerService>('the manager', new URL('./manager-process.js', import.meta.url));
      const started = process.call('start', {
        ...common,
        folder: join(dir, 'manager'),
        port: managerPort,
        extentBytes,
        ...codingOf(options),
      });
      return { process: process as Process, started, words: ({ address }) => `the manager is at ${address}` };
    });
    managerPort = Number(/\d+$/.exec(address)![0]);
    const start = (k: number) =>
      family.start(`node${k}`, () => {
        const folder = join(dir, `node${k}`);
        const process = new ChildService<NodeService>(`node${k}`, new URL('./node-process.js', import.meta.url));
        const started = process.call('start', { ...common, folder, manager: address });
        const words = (at: { node: number; address: string }) => `node ${at.node} is at ${at.address}, in ${folder}`;
        return { process: process as Process, started, words };
      });
    for (let k = 1; k <= nodes; k++) await start(k); // One after another, so that a new cluster numbers them as their folders.
    printUses(address, managerPort, output, options.psk);
    output.note('Ctrl-C ends it');
    const startNs = nowNs();
    await untilInterrupted(output.io.interrupted);
    const seconds = (nowNs() - startNs) / NS_PER_S;
    output.document('extents-up', { manager: address, cluster, nodes, deaths: family.deaths, seconds });
  } finally {
    await family.end();
  }
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

function printUses(address: string, port: number, output: Output, psk: string | undefined): void {
  const manager = address.startsWith('127.0.0.1:') && port === MANAGER_PORT ? '' : ` --manager ${address}`;
  const where = psk === undefined ? manager : `${manager} --psk ${psk}`;
  output.line('the cluster is up; to use it:');
  output.line(`  echo hello | rocev2 extents append log${where}`);
  output.line(`  rocev2 extents read log${where}`);
  output.line(`  rocev2 extents status${where}`);
  output.line(`  rocev2 extents disk create vol --size 1GiB${where}`);
  output.line(`  rocev2 disk nbd --backend stream:vol${where === '' ? '' : `@${address}`} --listen unix:/tmp/vol.sock`);
}

/** Refuses a folder that has something else, so that nothing is mixed. */
async function checkFolder(dir: string, nodes: number, output: Output): Promise<void> {
  let names: string[];
  try {
    await mkdir(dir, { recursive: true });
    names = await readdir(dir);
  } catch (cause) {
    throw new RoceError('ERR_ROCE_IO', `cannot use the folder ${dir}: ${whyUnwritable(cause)}`, undefined, { cause });
  }
  const foreign = names.find((name) => !/^(manager|node[1-9]\d*|lost\+found)$/.test(name));
  if (foreign !== undefined) {
    const hint = 'name an empty folder, or one that this command has made';
    throw new RoceError('ERR_ROCE_MISMATCH', `${dir} is not the folder of a cluster: it has '${foreign}'`, hint);
  }
  const numbers = names.map((name) => Number(/^node(\d+)$/.exec(name)?.[1] ?? 0));
  const most = Math.max(0, ...numbers);
  if (most > nodes) output.note(`${dir} has ${most} nodes, and ${nodes} are started: the others are down`);
}
