import { type Clock, checkKind, type RandomSource, RoceError } from 'rocev2/internal/core';
import type { BlockDeviceError } from 'rocev2/internal/disk';
import type { ExtentReader, ReaderTiming } from '../extent-reader.js';
import type { Manager, Nodes } from '../messages.js';
import type { WriterTiming } from '../stream-writer.js';

export interface DiskParts {
  readonly nodes: Nodes;
  readonly manager: Manager;
  readonly reader: ExtentReader;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly timing: WriterTiming & ReaderTiming;
  readonly onUnreadable?: ((error: BlockDeviceError) => void) | undefined;
  readonly onNotice?: ((notice: string) => void) | undefined;
}

const LOG = '.disk-log';
const MAP = '.disk-map';

export function logOf(disk: string): string {
  checkText('the name of a disk', disk);
  return `${disk}${LOG}`;
}

export function mapOf(disk: string): string {
  checkText('the name of a disk', disk);
  return `${disk}${MAP}`;
}

/** The part of a disk that a stream holds. */
export interface DiskPart {
  /** Name of the disk. */
  readonly disk: string;
  /** Its data, or the checkpoints of its map. */
  readonly part: 'log' | 'map';
}

/** The disk that a stream belongs to, and the part that it holds. Undefined: the stream does not belong to a disk. */
export function diskOf(stream: string): DiskPart | undefined {
  checkText('the name of a stream', stream);
  if (stream.endsWith(LOG)) return { disk: stream.slice(0, -LOG.length), part: 'log' };
  return stream.endsWith(MAP) ? { disk: stream.slice(0, -MAP.length), part: 'map' } : undefined;
}

function checkText(what: string, value: unknown): void {
  checkKind(what, value, typeof value === 'string', 'text');
}

export function checkDiskName(name: string): void {
  checkText('the name of a disk', name);
  if (/^[\w.-]{1,63}$/.test(name) && diskOf(name) === undefined) return;
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `'${name}' is not a name of a disk`,
    "1 to 63 letters, digits, '.', '_' and '-'",
  );
}
