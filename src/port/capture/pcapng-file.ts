/**
 * Packets are collected in one buffer while the other is written to the disk, so memory is bounded and an idle capture
 * is on disk at once. Packets that do not fit are left out and counted.
 */

import { type FileHandle, open } from 'node:fs/promises';
import { RoceError } from '../../core/errors.js';
import { whyUnwritable } from '../../core/file-errors.js';
import {
  type CaptureInterface,
  enhancedPacketBytes,
  interfaceDescriptionBlock,
  interfaceStatisticsBlock,
  sectionHeaderBlock,
  writeEnhancedPacket,
} from './pcapng-blocks.js';

export interface PacketSink {
  /** False when it was left out because the disk is slower than the traffic. */
  writePacket(interfaceId: number, timestampNs: bigint, packet: Uint8Array, comment?: string): boolean;
}

/** Each of the two buffers: 4 MiB hold about 1000 packets of 4 KiB. */
const DEFAULT_BUFFER_BYTES = 4 * 1024 * 1024;

const utf8 = new TextEncoder();

export class PcapngFile implements PacketSink {
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #lastTimestampNs: bigint[];
  readonly #dropped: number[];
  #filling: DataView<ArrayBuffer>;
  #spare: DataView<ArrayBuffer>;
  #used = 0;
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;
  #closed = false;

  private constructor(path: string, handle: FileHandle, interfaces: number, bufferBytes: number) {
    this.#path = path;
    this.#handle = handle;
    this.#lastTimestampNs = Array<bigint>(interfaces).fill(0n);
    this.#dropped = Array<number>(interfaces).fill(0);
    this.#filling = new DataView(new ArrayBuffer(bufferBytes));
    this.#spare = new DataView(new ArrayBuffer(bufferBytes));
  }

  static async create(
    path: string,
    interfaces: readonly CaptureInterface[],
    bufferBytes: number = DEFAULT_BUFFER_BYTES,
  ): Promise<PcapngFile> {
    let handle: FileHandle | undefined;
    try {
      handle = await open(path, 'w');
      for (const block of [sectionHeaderBlock('rocev2'), ...interfaces.map(interfaceDescriptionBlock)]) {
        await handle.write(block);
      }
      return new PcapngFile(path, handle, interfaces.length, bufferBytes);
    } catch (cause) {
      await handle?.close();
      throw writeError(path, cause);
    }
  }

  get dropped(): number {
    return this.#dropped.reduce((sum, count) => sum + count, 0);
  }

  writePacket(interfaceId: number, timestampNs: bigint, packet: Uint8Array, comment?: string): boolean {
    const note = comment === undefined ? undefined : utf8.encode(comment);
    const room = this.#filling.byteLength - this.#used;
    if (this.#closed || this.#failure !== undefined || enhancedPacketBytes(packet.length, note) > room) {
      this.#dropped[interfaceId]++;
      return false;
    }
    this.#used = writeEnhancedPacket(this.#filling, this.#used, {
      interfaceId,
      timestampNs,
      packet,
      comment: note,
    });
    this.#lastTimestampNs[interfaceId] = timestampNs;
    this.#writing ??= this.#drain();
    return true;
  }

  async flush(): Promise<void> {
    await this.#writing;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writing;
    try {
      if (this.#failure === undefined) {
        for (const [id, dropped] of this.#dropped.entries()) {
          await this.#handle.write(interfaceStatisticsBlock(id, this.#lastTimestampNs[id], dropped));
        }
      }
    } catch (cause) {
      this.#failure = writeError(this.#path, cause);
    } finally {
      await this.#handle.close();
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #drain(): Promise<void> {
    try {
      while (this.#used > 0) {
        const full = new Uint8Array(this.#filling.buffer, 0, this.#used);
        [this.#filling, this.#spare] = [this.#spare, this.#filling];
        this.#used = 0;
        await writeAll(this.#handle, full);
      }
    } catch (cause) {
      this.#failure = writeError(this.#path, cause);
    } finally {
      this.#writing = undefined;
    }
  }
}

/** `FileHandle.write` may write less than asked, e.g. when the disk is nearly full. */
async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  let offset = 0;
  while (offset < bytes.length) offset += (await handle.write(bytes, offset, bytes.length - offset)).bytesWritten;
}

function writeError(path: string, cause: unknown): RoceError {
  return new RoceError('ERR_ROCE_IO', `cannot write capture ${path}: ${whyUnwritable(cause)}`, undefined, { cause });
}
