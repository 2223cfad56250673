import {
  type BlockDevice,
  BlockDeviceError,
  checkRange,
  type WriteOptions,
  type WriteZeroesOptions,
} from 'rocev2/internal/disk';
import { IO } from '../opcodes.js';
import { diskErrorOf, NvmeStatusError } from '../status.js';
import type { HostRequest } from './host-queue.js';
import type { NamespaceIdentity, NvmeHost } from './nvme-host.js';

const FUA = 0x4000_0000;
const DEALLOCATE = 0x0200_0000;
const ATTRIBUTE_DEALLOCATE = 4;
/** NLB has 16 bits. */
const BLOCKS_MAX = 65_536;
const HAS_DATASET_MANAGEMENT = 1 << 2;
const HAS_WRITE_ZEROES = 1 << 3;

export class NvmeDisk implements BlockDevice {
  readonly sizeBytes: number;
  readonly blockBytes: number;
  readonly #host: NvmeHost;
  readonly #nsid: number;
  #optionalCommands: number;
  readonly #onClose: () => Promise<void>;

  constructor(host: NvmeHost, { nsid, sizeBytes, blockBytes }: NamespaceIdentity, onClose: () => Promise<void>) {
    this.#host = host;
    this.#nsid = nsid;
    this.#optionalCommands = host.identity.optionalCommands;
    this.sizeBytes = sizeBytes;
    this.blockBytes = blockBytes;
    this.#onClose = onClose;
  }

  async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    checkRange(this, offset, length, 'EINVAL', into);
    await this.#inParts(offset, length, this.#host.identity.transferBytesMax, (at, bytes) =>
      this.#blocks(IO.READ, at, bytes, 0, { into: into.subarray(at - offset, at - offset + bytes) }),
    );
  }

  async write(offset: number, data: Uint8Array, options?: WriteOptions): Promise<void> {
    checkRange(this, offset, data?.length, 'ENOSPC', data);
    const fua = options?.fua === true;
    await this.#inParts(offset, data.length, this.#host.identity.transferBytesMax, (at, bytes) =>
      this.#blocks(IO.WRITE, at, bytes, fua ? FUA : 0, { out: data.subarray(at - offset, at - offset + bytes) }),
    );
  }

  async flush(): Promise<void> {
    await this.#execute({ opcode: IO.FLUSH, nsid: this.#nsid });
  }

  async trim(offset: number, length: number): Promise<void> {
    checkRange(this, offset, length, 'EINVAL');
    if (length > 0) await this.#whereSupported(HAS_DATASET_MANAGEMENT, () => this.#deallocate(offset, length));
  }

  async writeZeroes(offset: number, length: number, options?: WriteZeroesOptions): Promise<void> {
    checkRange(this, offset, length, 'ENOSPC');
    const { fua = false, noHole = false, fast = false } = options ?? {};
    // A target does not announce what its Write Zeroes costs.
    if (fast) throw new BlockDeviceError('ENOTSUP', 'a namespace does not report which operations are fast');
    const flags = (fua ? FUA : 0) | (noHole ? 0 : DEALLOCATE);
    const isDone = await this.#whereSupported(HAS_WRITE_ZEROES, () =>
      this.#inParts(offset, length, BLOCKS_MAX * this.blockBytes, (at, bytes) =>
        this.#blocks(IO.WRITE_ZEROES, at, bytes, flags, {}),
      ),
    );
    if (isDone) return;
    const zeros = Buffer.alloc(Math.min(length, this.#host.identity.transferBytesMax));
    await this.#inParts(offset, length, zeros.length, (at, bytes) =>
      this.#blocks(IO.WRITE, at, bytes, fua ? FUA : 0, { out: zeros.subarray(0, bytes) }),
    );
  }

  close(): Promise<void> {
    return this.#onClose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * A controller may have a command that the medium of a namespace has not: so does nvmet on a file whose file system
   * cannot do it.
   */
  async #whereSupported(bit: number, execute: () => Promise<void>): Promise<boolean> {
    if ((this.#optionalCommands & bit) === 0) return false;
    try {
      await execute();
      return true;
    } catch (error) {
      if (!(error instanceof BlockDeviceError) || error.errno !== 'ENOTSUP') throw error;
      this.#optionalCommands &= ~bit;
      return false;
    }
  }

  #deallocate(offset: number, length: number): Promise<void> {
    const bytesMax = (2 ** 32 - 1) * this.blockBytes;
    return this.#inParts(offset, length, bytesMax, (at, bytes) => {
      const range = Buffer.alloc(16);
      range.writeUInt32LE(bytes / this.blockBytes, 4);
      range.writeBigUInt64LE(BigInt(at / this.blockBytes), 8);
      return this.#execute({
        opcode: IO.DATASET_MANAGEMENT,
        nsid: this.#nsid,
        dwords: [0, ATTRIBUTE_DEALLOCATE],
        out: range,
      });
    });
  }

  async #inParts(
    offset: number,
    length: number,
    bytesMax: number,
    each: (at: number, bytes: number) => Promise<void>,
  ): Promise<void> {
    const parts: Promise<void>[] = [];
    for (let at = offset; at < offset + length; at += bytesMax) {
      parts.push(each(at, Math.min(bytesMax, offset + length - at)));
    }
    const ended = await Promise.allSettled(parts); // None may use the memory once this has ended.
    for (const part of ended) if (part.status === 'rejected') throw part.reason;
  }

  #blocks(
    opcode: number,
    offset: number,
    length: number,
    flags: number,
    data: Pick<HostRequest, 'out' | 'into'>,
  ): Promise<void> {
    const lba = offset / this.blockBytes;
    const blocks = length / this.blockBytes;
    const dwords = [lba % 2 ** 32, Math.floor(lba / 2 ** 32), (flags | (blocks - 1)) >>> 0];
    return this.#execute({ opcode, nsid: this.#nsid, dwords, ...data });
  }

  async #execute(request: HostRequest): Promise<void> {
    try {
      await this.#host.io(request);
    } catch (error) {
      throw error instanceof NvmeStatusError ? diskErrorOf(error) : error;
    }
  }
}
