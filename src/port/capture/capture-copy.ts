/** Waits for the disk, loses nothing. */

import { type FileHandle, open, rm } from 'node:fs/promises';
import { RoceError } from '../../core/errors.js';
import { whyUnwritable } from '../../core/file-errors.js';
import type { CapturedPacket } from './captured-packet.js';
import {
  enhancedPacketBytes,
  interfaceDescriptionBlock,
  sectionHeaderBlock,
  writeEnhancedPacket,
} from './pcapng-blocks.js';

const BUFFER_BYTES = 1024 * 1024;

const utf8 = new TextEncoder();

export class CaptureCopy {
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #interfaces = new Map<string, number>();
  #buffer = new DataView(new ArrayBuffer(BUFFER_BYTES));
  #used = 0;

  private constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  static async create(path: string): Promise<CaptureCopy> {
    try {
      const copy = new CaptureCopy(path, await open(path, 'w'));
      await copy.#append(sectionHeaderBlock('rocev2'));
      return copy;
    } catch (cause) {
      throw unwritable(path, cause);
    }
  }

  async add(captured: CapturedPacket, remark?: string): Promise<void> {
    const { linkType, timestampNs, bytes, originalLength } = captured;
    const key = `${captured.interfaceId} ${linkType}`;
    let interfaceId = this.#interfaces.get(key);
    if (interfaceId === undefined) {
      interfaceId = this.#interfaces.size;
      this.#interfaces.set(key, interfaceId);
      await this.#append(interfaceDescriptionBlock({ name: `interface ${captured.interfaceId}`, linkType }));
    }
    const words = [captured.comment, remark].filter((text) => text !== undefined);
    const comment = words.length === 0 ? undefined : utf8.encode(words.join('\n'));
    await this.#reserve(enhancedPacketBytes(bytes.length, comment));
    const block = { interfaceId, timestampNs, packet: bytes, originalLength, comment };
    this.#used = writeEnhancedPacket(this.#buffer, this.#used, block);
  }

  async close(): Promise<void> {
    try {
      await this.#flush();
    } finally {
      await this.#handle.close();
    }
  }

  async discard(): Promise<void> {
    const isFile = (await this.#handle.stat()).isFile();
    await this.#handle.close();
    if (isFile) await rm(this.#path, { force: true });
  }

  async #append(block: Uint8Array): Promise<void> {
    await this.#reserve(block.length);
    new Uint8Array(this.#buffer.buffer).set(block, this.#used);
    this.#used += block.length;
  }

  async #reserve(bytes: number): Promise<void> {
    if (this.#used + bytes <= this.#buffer.byteLength) return;
    await this.#flush();
    if (bytes > this.#buffer.byteLength) this.#buffer = new DataView(new ArrayBuffer(bytes));
  }

  async #flush(): Promise<void> {
    try {
      for (let at = 0; at < this.#used; ) {
        at += (await this.#handle.write(new Uint8Array(this.#buffer.buffer), at, this.#used - at)).bytesWritten;
      }
      this.#used = 0;
    } catch (cause) {
      throw unwritable(this.#path, cause);
    }
  }
}

function unwritable(path: string, cause: unknown): RoceError {
  if (cause instanceof RoceError) return cause;
  const why = whyUnwritable(cause as NodeJS.ErrnoException);
  return new RoceError('ERR_ROCE_IO', `cannot write ${path}: ${why}`, undefined, { cause });
}
