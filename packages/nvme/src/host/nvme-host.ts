import { type Clock, NS_PER_MS, pause, RoceError } from 'rocev2/internal/core';
import { authenticate, type HostAuthenticationInit } from '../auth/host-authentication.js';
import type { Completion } from '../capsule.js';
import {
  type DiscoveredSubsystem,
  discoveryLogBytes,
  fieldText,
  readDiscoveryHeader,
  readDiscoveryLog,
} from '../discovery.js';
import {
  AUTHENTICATION_BYTES_MAX,
  AUTHENTICATION_REQUIRED,
  CNTLID_DYNAMIC,
  type ConnectRequest,
  refusedParameter,
  writeAuthentication,
  writeConnect,
} from '../fabrics.js';
import { IDENTIFY_BYTES } from '../identify.js';
import { ADMIN, CNS, DISCOVERY_NQN, FCTYPE, FEATURE, LOG, OP_FABRICS, PROPERTY } from '../opcodes.js';
import { NvmeStatusError } from '../status.js';
import type { HostConnection } from './host-connection.js';
import { HostQueue, type HostRequest } from './host-queue.js';

export interface NvmeHostOptions {
  readonly dial: (qid: number, entries: number) => Promise<HostConnection>;
  readonly clock: Clock;
  readonly nqn: string;
  readonly hostNqn: string;
  readonly hostId: Buffer;
  readonly ioQueues: number;
  readonly entries: number;
  readonly keepAliveMs: number;
  readonly authentication?: Pick<HostAuthenticationInit, 'secret' | 'controllerSecret' | 'randomBytes'>;
}

/** What a controller says of itself. */
export interface ControllerIdentity {
  /** CNTLID: its number in the subsystem. */
  readonly id: number;
  /** Serial number. */
  readonly serial: string;
  /** Model number, up to 40 characters. */
  readonly model: string;
  /** Firmware revision. */
  readonly firmware: string;
  /** NQN of its subsystem. */
  readonly nqn: string;
  /** As `1.4` or `2.0.1`. */
  readonly version: string;
  /** Bytes of the largest transfer. */
  readonly transferBytesMax: number;
  /** Bytes of data in the capsule of a write. */
  readonly inCapsuleBytes: number;
  /** Highest namespace ID. */
  readonly nsidMax: number;
  /** Optional commands: ONCS. */
  readonly optionalCommands: number;
  /** Whether there is a volatile write cache, which Flush empties. */
  readonly hasWriteCache: boolean;
  /** WCTEMP: from this temperature the controller warns, in kelvins. 0: it does not say. */
  readonly warningKelvin: number;
  /** CCTEMP: from this temperature it may stop, in kelvins. 0: it does not say. */
  readonly criticalKelvin: number;
}

/** What a namespace says of itself. */
export interface NamespaceIdentity {
  /** Namespace ID. */
  readonly nsid: number;
  /** Bytes of a logical block. */
  readonly blockBytes: number;
  /** All of its blocks together. */
  readonly sizeBytes: number;
  /** Cannot be written. */
  readonly readOnly: boolean;
  /** NGUID, 32 hex digits; zeros where it has none. */
  readonly nguid: string;
  /** EUI64, 16 hex digits; zeros where it has none. */
  readonly eui64: string;
  /** UUID, 32 hex digits; empty where it has none. */
  readonly uuid: string;
}

const ADMIN_ENTRIES = 32;
const ID_TYPE_UUID = 3;
/** EN, IOSQES 6, IOCQES 4. */
const CC_ENABLED = 0x0046_0001;
const CC_SHUTDOWN = 0x4000;
const CSTS_READY = 1;
const CSTS_FATAL = 2;
const SET_UP_LIMIT_NS = 30_000 * NS_PER_MS;
const COMMAND_LIMIT_NS = 30_000 * NS_PER_MS;
/** As nvme-cli. */
const DISCOVERY_TRIES = 10;
const DISCOVERY_ENTRIES_MAX = 16_384;
/** Retain Asynchronous Event. */
const LOG_KEEPS_EVENT = 0x8000;
const READY_POLL_NS = 10 * NS_PER_MS;
const TRANSFER_BYTES_MAX = 1 << 20;

export class NvmeHost {
  onFailure: (error: Error) => void = () => {};
  identity!: ControllerIdentity;
  readonly #options: NvmeHostOptions;
  readonly #admin: HostQueue;
  readonly #io: HostQueue[] = [];
  #cntlid = CNTLID_DYNAMIC;
  #next = 0;
  #cancelKeepAlive: () => void = () => {};
  #failure: Error | undefined;
  #configuration = 0;

  private constructor(options: NvmeHostOptions, admin: HostQueue) {
    this.#options = options;
    this.#admin = admin;
    admin.onFailure = (error) => this.#fail(error);
  }

  /**
   * Rejects with NvmeStatusError when the controller refuses, and with the failure of a connection; everything is
   * released.
   */
  static async connect(options: NvmeHostOptions): Promise<NvmeHost> {
    const host = new NvmeHost(options, new HostQueue(await options.dial(0, ADMIN_ENTRIES), ADMIN_ENTRIES));
    const { clock } = options;
    const cancel = clock.wakeAt(clock.nowNs() + SET_UP_LIMIT_NS, () =>
      host.#fail(new RoceError('ERR_ROCE_CONNECT', 'the target does not answer')),
    );
    try {
      await host.#setUp();
      cancel();
      return host;
    } catch (error) {
      cancel();
      await host.close();
      throw error;
    }
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  async discover(): Promise<DiscoveredSubsystem[]> {
    for (let tries = 0; tries < DISCOVERY_TRIES; tries++) {
      const { generation, entries } = readDiscoveryHeader(await this.logPage(LOG.DISCOVERY, discoveryLogBytes(0)));
      if (entries > DISCOVERY_ENTRIES_MAX) {
        const text = `the discovery log has ${entries} entries; at most ${DISCOVERY_ENTRIES_MAX} are read`;
        throw new RoceError('ERR_ROCE_LIMIT', text);
      }
      const page = await this.logPage(LOG.DISCOVERY, discoveryLogBytes(entries));
      // The pieces belong together if the log is the same after the last one.
      const { generation: after } = readDiscoveryHeader(await this.logPage(LOG.DISCOVERY, discoveryLogBytes(0)));
      const isSame = readDiscoveryHeader(page).generation === generation && after === generation;
      if (isSame) return readDiscoveryLog(page);
    }
    const text = `the discovery log changed during each of ${DISCOVERY_TRIES} attempts to read it`;
    throw new RoceError('ERR_ROCE_BUSY', text, 'try again later');
  }

  /** In pieces that the controller accepts (MDTS); the event of the page is kept until the last. */
  async logPage(id: number, bytes: number): Promise<Buffer> {
    const page = Buffer.alloc(bytes);
    const pieceBytes = Math.min(bytes, this.identity.transferBytesMax);
    for (let at = 0; at < bytes; at += pieceBytes) {
      const into = page.subarray(at, at + pieceBytes);
      const dwords = into.length / 4 - 1;
      const keepsEvent = at + pieceBytes < bytes ? LOG_KEEPS_EVENT : 0;
      await this.#command({
        opcode: ADMIN.GET_LOG_PAGE,
        nsid: 0xffff_ffff,
        dwords: [id | keepsEvent | ((dwords & 0xffff) << 16), dwords >>> 16, at],
        into,
      });
    }
    return page;
  }

  async namespaces(): Promise<NamespaceIdentity[]> {
    const list = await this.#identify(CNS.ACTIVE_NAMESPACES, 0);
    const found: NamespaceIdentity[] = [];
    for (let at = 0; at < list.length; at += 4) {
      const nsid = list.readUInt32LE(at);
      if (nsid === 0) break;
      found.push(await this.namespace(nsid));
    }
    return found;
  }

  async namespace(nsid: number): Promise<NamespaceIdentity> {
    const bytes = await this.#identify(CNS.NAMESPACE, nsid);
    const format = bytes.readUInt32LE(128 + 4 * (bytes[26] & 0xf));
    const shift = (format >>> 16) & 0xff;
    if (bytes.readBigUInt64LE(0) === 0n) throw new RoceError('ERR_ROCE_NOT_FOUND', `there is no namespace ${nsid}`);
    if ((format & 0xffff) !== 0 || shift < 9 || shift > 16) {
      throw new RoceError('ERR_ROCE_UNSUPPORTED', `namespace ${nsid} has blocks of 2^${shift} bytes with metadata`);
    }
    return {
      nsid,
      blockBytes: 2 ** shift,
      sizeBytes: Number(bytes.readBigUInt64LE(0)) * 2 ** shift,
      readOnly: (bytes[99] & 1) !== 0,
      nguid: bytes.toString('hex', 104, 120),
      eui64: bytes.toString('hex', 120, 128),
      uuid: await this.#uuidOf(nsid),
    };
  }

  /** Controllers before NVMe 1.3 have no descriptors. */
  async #uuidOf(nsid: number): Promise<string> {
    try {
      return uuidOf(await this.#identify(CNS.NAMESPACE_DESCRIPTORS, nsid));
    } catch (error) {
      if (error instanceof NvmeStatusError) return '';
      throw error;
    }
  }

  async io(request: HostRequest): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#next = (this.#next + 1) % this.#io.length;
    await this.#io[this.#next].execute(request);
  }

  async close(): Promise<void> {
    this.#cancelKeepAlive();
    if (this.#failure === undefined && this.#configuration !== 0) {
      await this.#setProperty(PROPERTY.CC, this.#configuration | CC_SHUTDOWN).catch(() => {});
    }
    this.#fail(new RoceError('ERR_ROCE_CLOSED', 'the association is closed'));
    for (const queue of [...this.#io, this.#admin]) await queue.close();
  }

  async #setUp(): Promise<void> {
    this.#cntlid = await this.#connect(this.#admin, 0, ADMIN_ENTRIES);
    await this.#enable();
    const version = await this.#getProperty(PROPERTY.VS);
    this.identity = controllerIdentity(await this.#identify(CNS.CONTROLLER, 0), version);
    const { ioQueues, entries, dial } = this.#options;
    const granted = ioQueues === 0 ? 0 : await this.#askForQueues(ioQueues);
    for (let qid = 1; qid <= granted; qid++) {
      const queue = new HostQueue(await dial(qid, entries), entries);
      queue.onFailure = (error) => this.#fail(error);
      this.#io.push(queue);
      await this.#connect(queue, qid, entries);
      queue.connection.inCapsuleBytes = this.identity.inCapsuleBytes;
    }
    this.#keepAlive();
  }

  async #connect(queue: HostQueue, qid: number, entries: number): Promise<number> {
    const { nqn, hostNqn, hostId, keepAliveMs } = this.#options;
    const request: ConnectRequest = {
      qid,
      entries,
      noSqFlow: false,
      keepAliveMs: qid === 0 ? keepAliveMs : 0,
      hostId,
      cntlid: this.#cntlid,
      subnqn: nqn,
      hostnqn: hostNqn,
    };
    const fields = Buffer.alloc(64);
    const out = writeConnect(fields, request);
    // Over TCP the data of Connect is always in the capsule, independent of later announcements of the controller.
    if (queue.connection.transport === 'tcp') queue.connection.inCapsuleBytes = 8192;
    const fill = (sqe: Buffer) => void fields.copy(sqe, 40, 40);
    const command = { opcode: OP_FABRICS, nsid: FCTYPE.CONNECT, fill, out };
    const { result } = await queue.execute(command).catch((error: unknown) => {
      throw connectError(error, nqn, hostNqn);
    });
    await this.#authenticate(queue, (Number(result & 0xffff_ffffn) & AUTHENTICATION_REQUIRED) !== 0);
    return Number(result & 0xffffn);
  }

  async #authenticate(queue: HostQueue, isRequired: boolean): Promise<void> {
    const { nqn: subsystemNqn, hostNqn, authentication } = this.#options;
    if (authentication === undefined) {
      if (!isRequired) return;
      throw new RoceError('ERR_ROCE_CONNECT', 'the target asks for authentication', 'give the secret of this host');
    }
    // A target that requests no authentication must not bypass the one that the host requires. A discovery controller
    // only lists subsystems, each of which has to authenticate itself.
    const isWanted = authentication.controllerSecret !== undefined && subsystemNqn !== DISCOVERY_NQN;
    if (!isRequired && !isWanted) return;
    const fill = (length: number) => (sqe: Buffer) => writeAuthentication(sqe, length);
    await authenticate({
      ...authentication,
      hostNqn,
      subsystemNqn,
      send: async (out) => {
        const command = { opcode: OP_FABRICS, nsid: FCTYPE.AUTHENTICATION_SEND, fill: fill(out.length), out };
        await queue.execute(command).catch((error: unknown) => {
          if (isRequired || !(error instanceof NvmeStatusError)) throw error;
          const cure = 'give it secrets, or this host no controller secret';
          throw new RoceError('ERR_ROCE_CONNECT', 'the target does not prove itself: it has no secrets', cure, {
            cause: error,
          });
        });
      },
      receive: async () => {
        const into = Buffer.alloc(AUTHENTICATION_BYTES_MAX);
        await queue.execute({ opcode: OP_FABRICS, nsid: FCTYPE.AUTHENTICATION_RECEIVE, fill: fill(into.length), into });
        return into;
      },
    });
  }

  async #enable(): Promise<void> {
    await this.#setProperty(PROPERTY.CC, CC_ENABLED);
    for (;;) {
      const status = await this.#getProperty(PROPERTY.CSTS);
      if ((status & CSTS_FATAL) !== 0) throw new RoceError('ERR_ROCE_CONNECT', 'the controller has failed (CSTS.CFS)');
      if ((status & CSTS_READY) !== 0) return;
      await pause(this.#options.clock, READY_POLL_NS);
    }
  }

  async #askForQueues(count: number): Promise<number> {
    const asked = (count - 1) * 0x1_0001;
    const { result } = await this.#command({
      opcode: ADMIN.SET_FEATURES,
      dwords: [FEATURE.NUMBER_OF_QUEUES, asked],
    });
    const granted = Number(result & 0xffff_ffffn);
    return Math.min(count, (granted & 0xffff) + 1, (granted >>> 16) + 1);
  }

  #keepAlive(): void {
    const { keepAliveMs, clock } = this.#options;
    if (keepAliveMs === 0) return;
    const dueNs = clock.nowNs() + (keepAliveMs * NS_PER_MS) / 2;
    this.#cancelKeepAlive = clock.wakeAt(dueNs, () => {
      if (this.#failure !== undefined) return;
      this.#keepAlive();
      const limit = clock.wakeAt(clock.nowNs() + keepAliveMs * NS_PER_MS, () =>
        this.#fail(new RoceError('ERR_ROCE_CONNECT', `the controller was silent for ${keepAliveMs} ms`)),
      );
      this.#admin.execute({ opcode: ADMIN.KEEP_ALIVE }).then(limit, limit);
    });
  }

  async #identify(cns: number, nsid: number): Promise<Buffer> {
    const into = Buffer.alloc(IDENTIFY_BYTES);
    await this.#command({ opcode: ADMIN.IDENTIFY, nsid, dwords: [cns], into });
    return into;
  }

  async #getProperty(offset: number): Promise<number> {
    const dwords = [0, offset];
    const { result } = await this.#command({ opcode: OP_FABRICS, nsid: FCTYPE.PROPERTY_GET, dwords });
    return Number(result & 0xffff_ffffn);
  }

  async #setProperty(offset: number, value: number): Promise<void> {
    this.#configuration = value;
    await this.#command({ opcode: OP_FABRICS, nsid: FCTYPE.PROPERTY_SET, dwords: [0, offset, value] });
  }

  /** A controller that does not answer an admin command has failed. */
  async #command(request: HostRequest): Promise<Completion> {
    const { clock } = this.#options;
    const cancel = clock.wakeAt(clock.nowNs() + COMMAND_LIMIT_NS, () =>
      this.#fail(new RoceError('ERR_ROCE_CONNECT', 'the controller did not answer a command for 30 s')),
    );
    try {
      return await this.#admin.execute(request);
    } finally {
      cancel();
    }
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#cancelKeepAlive();
    for (const queue of [this.#admin, ...this.#io]) queue.fail(error);
    this.onFailure(error);
  }
}

function connectError(error: unknown, nqn: string, hostNqn: string): unknown {
  if (!(error instanceof NvmeStatusError)) return error;
  const parameter = refusedParameter(error.result);
  const what =
    parameter === 'subnqn'
      ? `the target has no subsystem ${nqn} for this host`
      : parameter === 'hostnqn'
        ? `the target does not let ${hostNqn} use ${nqn}`
        : `the target refuses to connect to ${nqn}`;
  return new NvmeStatusError(error.status, what, error.result);
}

function uuidOf(descriptors: Buffer): string {
  for (let at = 0; at + 4 <= descriptors.length && descriptors[at + 1] !== 0; at += 4 + descriptors[at + 1]) {
    if (descriptors[at] === ID_TYPE_UUID) return descriptors.toString('hex', at + 4, at + 4 + descriptors[at + 1]);
  }
  return '';
}

function controllerIdentity(bytes: Buffer, version: number): ControllerIdentity {
  const mdts = bytes[77];
  const numbers = [version >>> 16, (version >>> 8) & 0xff, version & 0xff];
  return {
    id: bytes.readUInt16LE(78),
    serial: fieldText(bytes, 4, 20),
    model: fieldText(bytes, 24, 40),
    firmware: fieldText(bytes, 64, 8),
    nqn: fieldText(bytes, 768, 256),
    version: (numbers[2] === 0 ? numbers.slice(0, 2) : numbers).join('.'),
    transferBytesMax: mdts === 0 ? TRANSFER_BYTES_MAX : Math.min(2 ** mdts * 4096, TRANSFER_BYTES_MAX),
    inCapsuleBytes: Math.max(0, 16 * bytes.readUInt32LE(1792) - 64),
    nsidMax: bytes.readUInt32LE(516),
    optionalCommands: bytes.readUInt16LE(520),
    hasWriteCache: (bytes[525] & 1) !== 0,
    warningKelvin: bytes.readUInt16LE(266),
    criticalKelvin: bytes.readUInt16LE(268),
  };
}
