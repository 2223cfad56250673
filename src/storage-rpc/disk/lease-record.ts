/**
 * The lease of a disk, kept with the checksums because it must outlive the server. Two copies at 2048 and 6144, the
 * newer replacing the older, so that one is always whole. Copy, 512 bytes, little-endian: 0 magic, 4 version, 8
 * sequence 8, 16 term, 20 flags (1 held, 2 shared), 24 UUID of the owner, 40 label (UTF-8, zero-padded), 104 to 507
 * zero, 508 CRC-32C of the bytes before.
 */

import type { FileHandle } from 'node:fs/promises';
import { crc32c } from '../../core/crc32c.js';
import { NIL_UUID, UUID_BYTES, uuidBytes, uuidText } from './disk-identity.js';
import { readFully, writeFully } from './file-io.js';
import type { LeaseRecord } from './lease-store.js';

const MAGIC = 0x7361654c; // "Leas"
const VERSION = 1;
const COPY_BYTES = 512;
const COPIES_AT = [2048, 6144] as const;
const SEQUENCE_AT = 8;
const TERM_AT = 16;
const FLAGS_AT = 20;
const OWNER_AT = 24;
const LABEL_AT = 40;
const LABEL_BYTES = 64;
const CRC_AT = COPY_BYTES - 4;
const HELD = 1;
const SHARED = 2;

export class LeaseCopies {
  readonly #file: FileHandle;
  /** The newest one when the file was opened. */
  readonly initial: LeaseRecord | undefined;
  #sequence: bigint;

  private constructor(
    file: FileHandle,
    newest: { readonly record: LeaseRecord; readonly sequence: bigint } | undefined,
  ) {
    this.#file = file;
    this.initial = newest?.record;
    this.#sequence = newest?.sequence ?? 0n;
  }

  static async load(file: FileHandle): Promise<LeaseCopies> {
    const found: ReturnType<typeof decode> = [];
    for (const at of COPIES_AT) {
      const bytes = Buffer.alloc(COPY_BYTES);
      await readFully(file, bytes, at);
      found.push(...decode(bytes));
    }
    return new LeaseCopies(file, found.sort((a, b) => (a.sequence < b.sequence ? 1 : -1))[0]);
  }

  async write(record: LeaseRecord): Promise<void> {
    this.#sequence++;
    await writeFully(this.#file, encode(record, this.#sequence), COPIES_AT[Number(this.#sequence % 2n)]);
  }
}

function encode({ term, owner, label, isHeld }: LeaseRecord, sequence: bigint): Buffer {
  const bytes = Buffer.alloc(COPY_BYTES);
  bytes.writeUInt32LE(MAGIC, 0);
  bytes.writeUInt32LE(VERSION, 4);
  bytes.writeBigUInt64LE(sequence, SEQUENCE_AT);
  bytes.writeUInt32LE(term, TERM_AT);
  bytes.writeUInt32LE((isHeld ? HELD : 0) | (owner === undefined ? SHARED : 0), FLAGS_AT);
  bytes.set(uuidBytes(owner ?? NIL_UUID), OWNER_AT);
  bytes.write(label, LABEL_AT, LABEL_BYTES - 1, 'utf8');
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, CRC_AT)), CRC_AT);
  return bytes;
}

function decode(bytes: Buffer): Array<{ readonly record: LeaseRecord; readonly sequence: bigint }> {
  if (bytes.readUInt32LE(0) !== MAGIC || bytes.readUInt32LE(4) !== VERSION) return [];
  if (bytes.readUInt32LE(CRC_AT) !== crc32c(bytes.subarray(0, CRC_AT))) return [];
  const flags = bytes.readUInt32LE(FLAGS_AT);
  const owner = uuidText(bytes.subarray(OWNER_AT, OWNER_AT + UUID_BYTES));
  const label = bytes.subarray(LABEL_AT, LABEL_AT + LABEL_BYTES);
  const record = {
    term: bytes.readUInt32LE(TERM_AT),
    owner: (flags & SHARED) === 0 ? owner : undefined,
    label: label.toString('utf8', 0, label.indexOf(0)),
    isHeld: (flags & HELD) !== 0,
  };
  return [{ record, sequence: bytes.readBigUInt64LE(SEQUENCE_AT) }];
}
