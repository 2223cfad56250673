import { randomUUID } from 'node:crypto';
import { checkText } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';

/** Identifies a disk, and distinguishes older copies of it. */
export interface DiskIdentity {
  /** RFC 9562, lower case with hyphens. Chosen at random when the disk is made; zeros if unknown. */
  readonly uuid: string;
  /** Rises by one each time the disk is opened. An older copy of the disk has a smaller value. */
  readonly generation: number;
  /** For people, at most 63 bytes of UTF-8; may be empty. */
  readonly name: string;
  /**
   * The openings, the present one first. Two copies of a disk that were opened apart have different marks for the same
   * generation. Absent: the store keeps none. @internal
   */
  readonly openings?: readonly DiskOpening[];
}

/** One opening of a disk. */
export interface DiskOpening {
  /** Random; 0: unknown. */
  readonly mark: bigint;
  /** Checkpoints in this opening: a copy that was made earlier in the same opening has fewer. */
  readonly checkpoint: number;
}

/** Openings that a disk remembers. */
export const DISK_OPENINGS_MAX = 31;

export const NIL_UUID = '00000000-0000-0000-0000-000000000000';
export const UUID_BYTES = 16;
/** Longest name of a disk, in bytes of UTF-8. */
export const DISK_NAME_BYTES_MAX = 63;

export function newIdentity(name: string): DiskIdentity {
  return { uuid: randomUUID(), generation: 1, name };
}

export function uuidBytes(text: string): Buffer {
  checkText('uuid', text);
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) {
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a UUID`, `for example ${randomUUID()}`);
  }
  return Buffer.from(text.replaceAll('-', ''), 'hex');
}

export function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}

export function checkDiskName(name: string): void {
  checkText('the name of a disk', name);
  const bytes = Buffer.byteLength(name);
  if (bytes <= DISK_NAME_BYTES_MAX && !name.includes('\0')) return;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `the name of a disk has ${bytes} bytes`, `0 to ${DISK_NAME_BYTES_MAX}`);
}
