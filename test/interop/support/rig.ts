/**
 * Linux Soft-RoCE peers for tests: a typed hold on `test/interop/rig/rig`, whose README tells what it is.
 *
 * Every rig has a name, and so a namespace and scratch directory, of its own: several may run at a time. The rig lives
 * as long as a pipe to this process: however the process ends, its guests end too.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CommandResult, RunningCommand } from './command.js';

const RIG_COMMAND = fileURLToPath(new URL('../rig/rig', import.meta.url));

/** The exit status by which the rig says that it failed, not the command it ran. */
const RIG_FAILED = 90;

/** How guests are plugged in: taps on a bridge in a network namespace, or Ethernet frames in UDP datagrams. */
export type Wiring = 'bridge' | 'dgram';

/** One guest's link over UDP on 127.0.0.1: frames leave from `localPort` to `remotePort` and come back the same way. */
export interface DgramLink {
  readonly localPort: number;
  readonly remotePort: number;
  /** Address with prefix length. Default 10.77.0.(guest + 1)/24. */
  readonly ip4?: string;
  /** Address with prefix length. Default fd77::(guest + 1)/64. */
  readonly ip6?: string;
}

export interface RigOptions {
  /** Default 1. Not with `dgram`, where every link is a guest. */
  readonly guests?: 1 | 2;
  /** Of the guests' interfaces, in bytes. Default 1500, which makes a path MTU of 1024; 4200 makes 4096. */
  readonly mtu?: number;
  readonly dgram?: readonly DgramLink[];
  /** Default: that of the release. */
  readonly kernel?: GuestKernel;
}

/** A kernel other than that of Debian's release: the newer one of its backports. */
export type GuestKernel = 'backports';

export interface GuestOptions {
  /** 1 (the default) or 2. */
  readonly guest?: number;
  /** Default 60 s. A command that runs longer ends with exit code 124. */
  readonly timeoutMs?: number;
}

export interface RigGuest {
  readonly number: number;
  readonly mac: string;
  readonly ip4: string;
  readonly ip6: string;
  /** The guest's tap in the namespace, where `capture` can listen; null over dgram. */
  readonly interface: string | null;
}

export interface RigHost {
  readonly mac: string;
  readonly ip4: string;
  readonly ip6: string;
  readonly interface: string;
}

/** The names of rxe's `hw_counters`. */
export type RxeCounter =
  | 'sent_pkts'
  | 'rcvd_pkts'
  | 'duplicate_request'
  | 'out_of_seq_request'
  | 'rcvd_rnr_err'
  | 'send_rnr_err'
  | 'rcvd_seq_err'
  | 'ack_deferred'
  | 'retry_exceeded_err'
  | 'retry_rnr_exceeded_err'
  | 'completer_retry_err'
  | 'send_err'
  | 'link_downed'
  | 'rdma_sends'
  | 'rdma_recvs';

/** Version strings of what the guests run, and of the QEMU they run in. */
export interface RigVersions {
  readonly kernel: string;
  readonly kernelPackage: string;
  readonly rdmaCore: string;
  readonly perftest: string;
  readonly iproute2: string;
  readonly qemu: string;
}

interface RigRecord {
  readonly namespace: string | null;
  readonly host: RigHost | null;
  readonly guests: readonly RigGuest[];
  readonly bootSeconds: number;
}

/** The rig itself failed: it could not start, a guest died, a job of that name does not exist. */
export class RigFailure extends Error {
  override readonly name = 'RigFailure';
}

/** A command running in the background of a guest. */
export interface GuestJob {
  /** What it has written so far. */
  log(): Promise<CommandResult>;
  /** Its result, once it has ended; exit code 124 when that takes longer than `timeoutMs` (default 60 s). */
  wait(timeoutMs?: number): Promise<CommandResult>;
  /** Ends it and everything it started; it then has exit code 143. Harmless after its end. */
  kill(): Promise<void>;
}

export interface Capture {
  readonly file: string;
  /** Ends the capture; the pcapng file's path. */
  stop(): Promise<string>;
}

/** Every nth packet, counted from now, or each with probability 1/n. Where counts could fall into step with a protocol, take chance. */
export type LossRule = ({ readonly every: number } | { readonly random: number }) & {
  /** Default: all directions. */
  readonly direction?: 'any' | 'to1' | 'from1' | 'to2' | 'from2';
  /** Only management datagrams (to QP1) count and are dropped. */
  readonly gsiOnly?: boolean;
};

export interface Loss {
  /** Lets packets pass again; how many were dropped. */
  stop(): Promise<number>;
}

let rigsStarted = 0;

export class Rig implements AsyncDisposable {
  /** Scratch directory of the test, removed by `stop`. */
  readonly directory: string;
  readonly namespace: string | null;
  readonly guests: readonly RigGuest[];
  /** From the first QEMU start until `rxe0` was active in every guest. */
  readonly bootMs: number;
  readonly #name: string;
  readonly #holder: RunningCommand;
  readonly #host: RigHost | null;
  readonly #hostProcesses = new Set<RunningCommand>();
  #captures = 0;
  #stopped: Promise<void> | undefined;

  private constructor(name: string, directory: string, holder: RunningCommand, record: RigRecord) {
    this.#name = name;
    this.directory = directory;
    this.#holder = holder;
    this.namespace = record.namespace;
    this.#host = record.host;
    this.guests = record.guests.map((guest) => ({
      ...guest,
      ip4: withoutPrefix(guest.ip4),
      ip6: withoutPrefix(guest.ip6),
    }));
    this.bootMs = record.bootSeconds * 1000;
  }

  /** Why no rig can run on this machine, in one line; undefined when one can. */
  static async refusal(wiring: Wiring = 'bridge'): Promise<string | undefined> {
    if (process.platform !== 'linux') return `the rig needs Linux, this is ${process.platform}`;
    const check = new RunningCommand([RIG_COMMAND, 'check', ...(wiring === 'dgram' ? ['--dgram'] : [])]);
    const { exitCode, stdout, stderr } = await check.wait();
    if (exitCode === 0) return undefined;
    return stdout.trim() || stderr.trim() || `rig check ended with ${exitCode}`;
  }

  /** Installs what is missing and builds the guest image: minutes the first time, nothing afterwards. */
  static async prepare(kernel?: GuestKernel): Promise<void> {
    await runRig(['prepare'], kernelEnv(kernel), 30 * 60_000);
  }

  /** Why no guest with this kernel can be built, in one line; undefined when there is one. */
  static async kernelRefusal(kernel: GuestKernel): Promise<string | undefined> {
    try {
      await Rig.prepare(kernel);
      return undefined;
    } catch (error) {
      return `no kernel of Debian's ${kernel}: ${(error as Error).message}`;
    }
  }

  static async versions(): Promise<RigVersions> {
    return JSON.parse(await runRig(['versions'], {}, 30 * 60_000)) as RigVersions;
  }

  /** Boots the guests and returns when all of them have an active `rxe0`. Rejects with RigFailure. */
  static async start(options: RigOptions = {}): Promise<Rig> {
    try {
      return await Rig.#boot(options);
    } catch (error) {
      // On a machine with too much to do QEMU was seen to go in the middle of a boot. What boots never is found by the second try.
      console.warn(`a rig did not boot, and gets a second chance: ${(error as Error).message}`);
      return await Rig.#boot(options);
    }
  }

  static async #boot(options: RigOptions): Promise<Rig> {
    const name = `${process.pid}-${++rigsStarted}-${Date.now().toString(36)}`;
    const directory = await mkdtemp(join(tmpdir(), 'rocev2-interop-'));
    const holder = new RunningCommand([RIG_COMMAND, 'up', '--json', '--hold', ...bootArguments(options)], {
      env: { ...process.env, ...kernelEnv(options.kernel), RIG_NAME: name },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true, // out of the terminal's reach: Ctrl-C must not cut short the taking down
    });
    try {
      const [line] = await holder.waitForOutput(/^\{.*\}\n/, 30 * 60_000);
      return new Rig(name, directory, holder, JSON.parse(line) as RigRecord);
    } catch (cause) {
      holder.endInput();
      await rm(directory, { recursive: true, force: true });
      throw new RigFailure(holder.stderr.trim() || String(cause), { cause });
    }
  }

  /** This machine's side of the bridge. */
  get hostSide(): RigHost {
    if (this.#host === null) throw new RigFailure('a rig over dgram has no bridge');
    return this.#host;
  }

  /** Runs a shell command in a guest, whatever its exit code. */
  async exec(command: string, options: GuestOptions = {}): Promise<CommandResult> {
    const timeoutMs = options.timeoutMs ?? 60_000;
    return this.#inGuest(
      ['exec', ...guestArguments(options), '-t', `${timeoutMs / 1000}`, '--json', command],
      timeoutMs,
    );
  }

  /** Starts a shell command in the background of a guest. A name can be used again once its job has ended. */
  async background(name: string, command: string, options: Pick<GuestOptions, 'guest'> = {}): Promise<GuestJob> {
    const guest = guestArguments(options);
    await this.#rig(['bg', ...guest, name, command]);
    return {
      log: () => this.#inGuest(['log', ...guest, '--json', name], 20_000),
      wait: (timeoutMs = 60_000) =>
        this.#inGuest(['wait', ...guest, '-t', `${timeoutMs / 1000}`, '--json', name], timeoutMs),
      kill: async () => {
        await this.#rig(['kill', ...guest, name]);
      },
    };
  }

  /** Resolves when somebody in the guest listens on a TCP or rdma_cm port, as perftest and rping servers do. */
  async listening(port: number, options: GuestOptions = {}): Promise<void> {
    const timeoutMs = options.timeoutMs ?? 20_000;
    const { exitCode } = await this.#inGuest(
      ['listening', ...guestArguments(options), '-t', `${timeoutMs / 1000}`, '--json', `${port}`],
      timeoutMs,
    );
    if (exitCode !== 0) throw new RigFailure(`nobody listened on port ${port} within ${timeoutMs} ms`);
  }

  /** The `hw_counters` of rxe0. `rcvd_pkts` counts what passed the checks of address, QP, P_Key and ICRC. */
  async counters(options: Pick<GuestOptions, 'guest'> = {}): Promise<Record<RxeCounter, number>> {
    const { stdout } = await this.exec('cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep . *', options);
    const lines = stdout.trim().split('\n');
    const values = lines.map((line) => line.split(':')).map(([name, value]) => [name, Number(value)]);
    return Object.fromEntries(values) as Record<RxeCounter, number>;
  }

  /** Copies a small file into a guest, with its permissions. */
  async put(file: string, destination: string, options: Pick<GuestOptions, 'guest'> = {}): Promise<void> {
    await this.#rig(['put', ...guestArguments(options), file, destination]);
  }

  /** Starts a process of this machine inside the namespace (`argv`, no shell); `stop` ends it at the latest. `env` adds to ours. */
  host(argv: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): RunningCommand {
    if (this.namespace === null) throw new RigFailure('a rig over dgram has no namespace');
    const command = new RunningCommand(['ip', 'netns', 'exec', this.namespace, ...argv], {
      ...options,
      env: { ...process.env, ...options.env },
    });
    this.#hostProcesses.add(command);
    return command;
  }

  /** Captures to a pcapng file, by default all of UDP port 4791 on the bridge, into `directory`. One at a time. */
  async capture(options: { file?: string; interface?: string; filter?: string } = {}): Promise<Capture> {
    const file = options.file ?? join(this.directory, `capture-${++this.#captures}.pcapng`);
    const where = options.interface === undefined ? [] : ['-i', options.interface];
    const what = options.filter === undefined ? [] : ['-f', options.filter];
    await this.#rig(['cap', 'start', ...where, ...what, file]);
    return {
      file,
      stop: async () => {
        await this.#rig(['cap', 'stop']);
        return file;
      },
    };
  }

  /** Drops RoCEv2 packets on the bridge. Replaces an earlier rule. */
  async loss(rule: LossRule): Promise<Loss> {
    const which = 'every' in rule ? ['every', `${rule.every}`] : ['random', `${rule.random}`];
    const gsi = rule.gsiOnly === true ? ['--gsi'] : [];
    await this.#rig(['loss', ...which, '--dir', rule.direction ?? 'any', ...gsi]);
    return { stop: async () => Number(await this.#rig(['loss', 'off'])) };
  }

  /** Ends the guests and every process started here, and removes all traces. May be called any number of times. */
  stop(): Promise<void> {
    this.#stopped ??= this.#takeDown();
    return this.#stopped;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #takeDown(): Promise<void> {
    await Promise.allSettled([...this.#hostProcesses].map((command) => command.stop()));
    this.#holder.endInput();
    const { exitCode, stderr } = await this.#holder.wait();
    await rm(this.directory, { recursive: true, force: true });
    if (exitCode !== 0) throw new RigFailure(stderr.trim());
  }

  #rig(argv: readonly string[], timeoutMs = 30_000): Promise<string> {
    return runRig(argv, { RIG_NAME: this.#name }, timeoutMs);
  }

  async #inGuest(argv: readonly string[], timeoutMs: number): Promise<CommandResult> {
    // The guest ends the command in time; the margin is for a guest that no longer does anything.
    return JSON.parse(await this.#rig(argv, timeoutMs + 30_000)) as CommandResult;
  }
}

function kernelEnv(kernel: GuestKernel | undefined): NodeJS.ProcessEnv {
  return kernel === undefined ? {} : { RIG_KERNEL: kernel };
}

async function runRig(argv: readonly string[], env: NodeJS.ProcessEnv, timeoutMs: number): Promise<string> {
  const command = new RunningCommand([RIG_COMMAND, ...argv], { env: { ...process.env, ...env } });
  const { exitCode, stdout, stderr } = await command.wait(timeoutMs);
  if (exitCode === 0) return stdout;
  const reason = stderr.trim() || stdout.trim();
  throw new RigFailure(exitCode === RIG_FAILED ? reason : `rig ${argv[0]} ended with ${exitCode}: ${reason}`);
}

function bootArguments({ guests, mtu, dgram }: RigOptions): string[] {
  if (dgram !== undefined && guests !== undefined)
    throw new TypeError('`dgram` already says how many guests there are');
  const links = dgram?.flatMap(({ localPort, remotePort }) => ['--dgram', `${localPort},${remotePort}`]);
  const addresses = dgram?.flatMap((link, index) => [
    ...['--ip4', link.ip4 ?? `10.77.0.${index + 2}/24`],
    ...['--ip6', link.ip6 ?? `fd77::${index + 2}/64`],
  ]);
  return [...(links ?? ['--guests', `${guests ?? 1}`]), ...(addresses ?? []), '--mtu', `${mtu ?? 1500}`];
}

function guestArguments({ guest = 1 }: Pick<GuestOptions, 'guest'>): string[] {
  return ['-g', `${guest}`];
}

function withoutPrefix(address: string): string {
  return address.split('/')[0] as string;
}
