import { randomBytes, randomUUID } from 'node:crypto';
import { checkKind, checkOptions, checkWhole, NS_PER_MS, type OptionNames, RoceError } from 'rocev2/internal/core';
import { type BlockDevice, BlockDeviceError, type WriteOptions, type WriteZeroesOptions } from 'rocev2/internal/disk';
import { offerCrc32c, SYSTEM_CLOCK } from 'rocev2/internal/driver';
import { type HostEvent, HostOutage, noticeOf } from 'rocev2/internal/storage-rpc';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { DhchapSecret } from '../auth/dhchap-secret.js';
import { NvmeTlsKey, TLS_DERIVATIONS, type TlsPsk } from '../auth/tls-key.js';
import { expectSameNamespace } from '../host/expected-namespace.js';
import { NvmeDisk } from '../host/nvme-disk.js';
import { type NamespaceIdentity, NvmeHost, type NvmeHostOptions } from '../host/nvme-host.js';
import { NVME_PORT } from '../opcodes.js';
import { DNR, NvmeStatusError } from '../status.js';
import { checkNqn } from '../subsystem.js';
import { NvmeDialer } from './nvme-dialer.js';

/** Which namespace to open, and how. */
export interface OpenNvmeOptions {
  /** IP address of the target. */
  readonly address: string;
  /** Port of the target. Default 4420. */
  readonly port?: number | undefined;
  /** NQN of the subsystem. */
  readonly nqn: string;
  /** Namespace ID. Default 1. */
  readonly nsid?: number | undefined;
  /**
   * Device for RDMA, which must not have a connection manager yet; without it the transport is TCP. The caller closes
   * it.
   */
  readonly device?: RdmaDevice | undefined;
  /** NQN of this host. Default: a random one. */
  readonly hostNqn?: string | undefined;
  /** DH-HMAC-CHAP secret by which this host authenticates itself; it belongs to `hostNqn`. */
  readonly secret?: string | undefined;
  /** The target must prove that it has this secret. */
  readonly controllerSecret?: string | undefined;
  /**
   * Key of TLS 1.3, `NVMeTLSkey-1:HASH:BASE64:`; it belongs to `hostNqn`. NVMe/TCP only. Without it there is no TLS.
   */
  readonly tlsKey?: string | undefined;
  /** I/O queues, 1..64; the target may give fewer. Default 1. */
  readonly ioQueues?: number | undefined;
  /** Entries of an I/O queue, 2..128: one more than the commands in flight. Default 64. */
  readonly entries?: number | undefined;
  /** CRC-32C over headers and data of NVMe/TCP. Default true. */
  readonly digests?: boolean | undefined;
  /** Both sides give up a peer that is silent for this many milliseconds. Default 5000. */
  readonly keepAliveMs?: number | undefined;
  /**
   * Milliseconds that requests wait for an unreachable target before they fail with EIO. Default 600 000; 0: they fail
   * at once.
   */
  readonly lossTimeoutMs?: number | undefined;
  /** Called with a line of text when the target is lost, has a different namespace, or is back. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

const OPTIONS: OptionNames<OpenNvmeOptions> = {
  address: true,
  port: true,
  nqn: true,
  nsid: true,
  device: true,
  hostNqn: true,
  secret: true,
  controllerSecret: true,
  tlsKey: true,
  ioQueues: true,
  entries: true,
  digests: true,
  keepAliveMs: true,
  lossTimeoutMs: true,
  onNotice: true,
};
/** Optional whole numbers, each with its range. */
const RANGES = {
  port: [1, 65_535],
  nsid: [1, 2 ** 32 - 2],
  ioQueues: [1, 64],
  entries: [2, 128],
  keepAliveMs: [0, 2 ** 32 - 1],
  lossTimeoutMs: [0, Number.MAX_SAFE_INTEGER],
} as const;
const KEEP_ALIVE_MS = 5_000;
const LOSS_TIMEOUT_MS = 600_000;
const RECONNECT_DELAY_NS = 1_000 * NS_PER_MS;

export function hostAuthentication(
  secret: string | undefined,
  controllerSecret: string | undefined,
): NvmeHostOptions['authentication'] {
  if (secret === undefined) {
    if (controllerSecret === undefined) return undefined;
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      'a target authenticates itself only to a host that authenticates',
      'also give the secret of the host',
    );
  }
  return {
    secret: DhchapSecret.parse(secret),
    controllerSecret: controllerSecret === undefined ? undefined : DhchapSecret.parse(controllerSecret),
    randomBytes,
  };
}

export function hostTlsPsks(key: string | undefined, hostNqn: string | undefined, nqn: string): TlsPsk[] | undefined {
  if (key === undefined) return undefined;
  if (hostNqn === undefined) {
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'a TLS key belongs to the NQN of a host', 'also give the NQN');
  }
  const parsed = NvmeTlsKey.parse(key);
  return TLS_DERIVATIONS.map((derivation) => parsed.pskOf({ hostNqn, subsystemNqn: nqn }, derivation));
}

export interface HostName {
  readonly hostNqn: string;
  readonly hostId: Buffer;
}

export function newHostName(): HostName {
  const uuid = randomUUID();
  return { hostNqn: `nqn.2014-08.org.nvmexpress:uuid:${uuid}`, hostId: Buffer.from(uuid.replaceAll('-', ''), 'hex') };
}

/**
 * Opens a namespace. When the connection fails, requests wait for a new one; those in flight are repeated. They never
 * go to a namespace with another identity or block size, or a smaller size. Rejects with ERR_ROCE_CONNECT if the target
 * cannot be reached, NvmeStatusError if it refuses, ERR_ROCE_NOT_FOUND for a missing namespace. Rejects with
 * ERR_ROCE_MALFORMED for an invalid NQN, secret or key, ERR_ROCE_INVALID_ARGUMENT for a TLS key without `hostNqn`.
 * Rejects with ERR_ROCE_CONFLICT for TLS over RDMA, ERR_ROCE_UNSUPPORTED for a TLS key of SHA-384,
 * ERR_ROCE_UNKNOWN_NAME for an unknown option.
 */
export async function openNvme(options: OpenNvmeOptions): Promise<BlockDevice> {
  checkOptions('openNvme', options, OPTIONS);
  checkHostOptions(options);
  offerCrc32c();
  const { address, port = NVME_PORT, device, digests = true } = options;
  const tls = hostTlsPsks(options.tlsKey, options.hostNqn, options.nqn);
  if (tls !== undefined && device !== undefined) {
    throw new RoceError('ERR_ROCE_CONFLICT', 'RDMA has no TLS', 'leave out the device, or the key');
  }
  const dialer = await NvmeDialer.open({
    address,
    port,
    digests,
    ...(device !== undefined && { device }),
    ...(tls !== undefined && { tls }),
  });
  try {
    return await ReconnectingDisk.open(options, dialer);
  } catch (error) {
    await dialer.close();
    throw error;
  }
}

function checkHostOptions(options: OpenNvmeOptions): void {
  const { address, nqn, hostNqn, device, digests, onNotice } = options;
  checkKind('address', address, typeof address === 'string' && address !== '', 'the IP address of the target');
  checkNqn(nqn);
  if (hostNqn !== undefined) checkNqn(hostNqn);
  for (const name of ['secret', 'controllerSecret', 'tlsKey'] as const) {
    checkKind(name, options[name], options[name] === undefined || typeof options[name] === 'string', 'text');
  }
  const isDevice = device === undefined || typeof device?.createPd === 'function';
  checkKind('device', device, isDevice, 'a device of openDevice()');
  for (const [name, [min, max]] of Object.entries(RANGES)) {
    const value = options[name as keyof typeof RANGES];
    if (value !== undefined) checkWhole(name, value, min, max);
  }
  checkKind('digests', digests, digests === undefined || typeof digests === 'boolean', 'true or false');
  checkKind('onNotice', onNotice, onNotice === undefined || typeof onNotice === 'function', 'a function');
}

interface Association {
  readonly host: NvmeHost;
  readonly disk: NvmeDisk;
}

class ReconnectingDisk implements BlockDevice {
  readonly sizeBytes: number;
  readonly blockBytes: number;
  readonly #options: OpenNvmeOptions;
  readonly #dialer: NvmeDialer;
  readonly #name: HostName;
  readonly #identity: NamespaceIdentity;
  readonly #outage: HostOutage;
  #association: Promise<Association>;
  #closing: Promise<void> | undefined;
  #wakeRetry: () => void = () => {};

  private constructor(
    options: OpenNvmeOptions,
    dialer: NvmeDialer,
    name: HostName,
    host: NvmeHost,
    identity: NamespaceIdentity,
  ) {
    this.sizeBytes = identity.sizeBytes;
    this.blockBytes = identity.blockBytes;
    this.#options = options;
    this.#dialer = dialer;
    this.#identity = identity;
    const onEvent = (event: HostEvent) => {
      const notice = noticeOf(event);
      if (notice !== undefined) options.onNotice?.(notice);
    };
    this.#outage = new HostOutage({ clock: SYSTEM_CLOCK, onEvent });
    this.#name = name;
    this.#association = Promise.resolve(this.#associate(host));
  }

  static async open(options: OpenNvmeOptions, dialer: NvmeDialer): Promise<ReconnectingDisk> {
    const name = newHostName();
    const host = await connectHost(options, dialer, name);
    try {
      const identity = await host.namespace(options.nsid ?? 1);
      return new ReconnectingDisk(options, dialer, name, host, identity);
    } catch (error) {
      await host.close();
      throw error;
    }
  }

  read(offset: number, length: number, into: Uint8Array): Promise<void> {
    return this.#run((disk) => disk.read(offset, length, into));
  }

  write(offset: number, data: Uint8Array, options?: WriteOptions): Promise<void> {
    return this.#run((disk) => disk.write(offset, data, options));
  }

  flush(): Promise<void> {
    return this.#run((disk) => disk.flush());
  }

  trim(offset: number, length: number): Promise<void> {
    return this.#run((disk) => disk.trim(offset, length));
  }

  writeZeroes(offset: number, length: number, options?: WriteZeroesOptions): Promise<void> {
    return this.#run((disk) => disk.writeZeroes(offset, length, options));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#wakeRetry();
    const association = await this.#association.catch(() => undefined);
    if (association !== undefined) await association.disk.flush().catch(() => {});
    await association?.host.close();
    await this.#dialer.close();
  }

  /** What the target refuses is not tried again. */
  async #run(request: (disk: NvmeDisk) => Promise<void>): Promise<void> {
    for (;;) {
      if (this.#closing !== undefined) throw new BlockDeviceError('ESHUTDOWN', 'the disk is closed');
      const { disk } = await this.#association;
      try {
        await request(disk);
        return;
      } catch (error) {
        if (error instanceof BlockDeviceError) throw error;
        // The association has failed: its `onFailure` has started the next one.
      }
    }
  }

  #associate(host: NvmeHost): Association {
    host.onFailure = () => {
      if (this.#closing !== undefined) return;
      this.#association = this.#reconnect(host);
      this.#association.catch(() => {});
    };
    if (host.hasFailed) host.onFailure(new BlockDeviceError('EIO', 'the association failed at once'));
    return { host, disk: new NvmeDisk(host, this.#identity, () => host.close()) };
  }

  async #reconnect(failed: NvmeHost): Promise<Association> {
    const { lossTimeoutMs = LOSS_TIMEOUT_MS } = this.#options;
    const untilNs = SYSTEM_CLOCK.nowNs() + lossTimeoutMs * NS_PER_MS;
    await failed.close();
    for (;;) {
      try {
        const host = await this.#findAgain();
        this.#outage.onReach(this, undefined);
        return this.#associate(host);
      } catch (error) {
        if (this.#closing === undefined) this.#outage.onReach(this, error as Error);
        const isFinal = error instanceof NvmeStatusError && (error.status & DNR) !== 0;
        if (isFinal || SYSTEM_CLOCK.nowNs() >= untilNs || this.#closing !== undefined) {
          throw new BlockDeviceError('EIO', `the target cannot be reached: ${(error as Error).message}`, {
            cause: error,
          });
        }
      }
      await this.#delay();
    }
  }

  async #findAgain(): Promise<NvmeHost> {
    const host = await connectHost(this.#options, this.#dialer, this.#name);
    try {
      expectSameNamespace(this.#identity, await host.namespace(this.#identity.nsid));
      return host;
    } catch (error) {
      await host.close();
      throw error;
    }
  }

  #delay(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = SYSTEM_CLOCK.wakeAt(SYSTEM_CLOCK.nowNs() + RECONNECT_DELAY_NS, resolve);
      this.#wakeRetry = () => {
        cancel();
        resolve();
      };
    });
  }
}

function connectHost(options: OpenNvmeOptions, dialer: NvmeDialer, name: HostName): Promise<NvmeHost> {
  const { nqn, hostNqn = name.hostNqn, ioQueues = 1, entries = 64, keepAliveMs = KEEP_ALIVE_MS } = options;
  const authentication = hostAuthentication(options.secret, options.controllerSecret);
  return NvmeHost.connect({
    dial: (qid, count) => dialer.dial(qid, count),
    clock: SYSTEM_CLOCK,
    nqn,
    hostNqn,
    hostId: name.hostId,
    ioQueues,
    entries,
    keepAliveMs,
    ...(authentication !== undefined && { authentication }),
  });
}
