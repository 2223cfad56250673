import { checkObject, checkText } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import type { BlockDevice } from './disk/block-device.js';
import { FileDevice, type FileDeviceOptions } from './disk/file-device.js';
import { MemoryDevice } from './disk/memory-device.js';
import { NbdDevice } from './nbd/nbd-device.js';

/** Options that only a disk in a file has. All are optional. */
export type FileBackendOptions = Omit<FileDeviceOptions, 'path' | 'sizeBytes'>;

/**
 * Opens a backend. `sizeBytes` is needed for memory, creates a missing file, and must match an existing one; the size
 * of an NBD export is the server's. Notices go to `onNotice` of `options`. Rejects with ERR_ROCE_MALFORMED for a
 * malformed backend, ERR_ROCE_INVALID_ARGUMENT where the size is missing, ERR_ROCE_CONFLICT if the backend does not
 * take the size or another option, and as the backends do.
 */
export async function openBackend(
  spec: string,
  sizeBytes: number | undefined,
  options: FileBackendOptions = {},
): Promise<BlockDevice> {
  checkText('the backend', spec);
  checkObject('the options of openBackend', options, 'an object');
  if (spec.startsWith('file:') && spec.length > 'file:'.length) {
    return FileDevice.open({
      ...options,
      path: spec.slice('file:'.length),
      ...(sizeBytes !== undefined && { sizeBytes }),
    });
  }
  const chosen = Object.entries(options).find(([name, value]) => name !== 'onNotice' && value !== undefined);
  if (chosen !== undefined && isBackend(spec)) {
    throw new RoceError('ERR_ROCE_CONFLICT', `only a disk in a file has the option ${chosen[0]}`, 'leave it out');
  }
  if (spec === 'memory') {
    if (sizeBytes === undefined || sizeBytes === 0) {
      throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'a disk in memory needs a size', 'for example 1GiB');
    }
    return new MemoryDevice(sizeBytes);
  }
  if (isNbd(spec)) {
    if (sizeBytes !== undefined) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'the server sets the size of an NBD export');
    }
    const device = await NbdDevice.open(spec.replace(/^nbd:(?=nbd)/, ''));
    const { unusedBytes, blockBytes } = device;
    if (unusedBytes > 0) {
      const text = `the size of the NBD export is not a multiple of its blocks of ${blockBytes} bytes`;
      options.onNotice?.(`${text}: its last ${unusedBytes} bytes are not used`);
    }
    return device;
  }
  throw new RoceError('ERR_ROCE_MALFORMED', `'${spec}' is not a backend`, 'give memory, file:PATH or nbd:URI');
}

function isNbd(spec: string): boolean {
  return /^nbds?(\+unix)?:/.test(spec);
}

function isBackend(spec: string): boolean {
  return spec === 'memory' || isNbd(spec);
}
