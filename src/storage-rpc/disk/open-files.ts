/**
 * Opens or creates the two files of a disk. If checksums exist but the data is missing or empty, the disk is only
 * created with `create`.
 */

import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { RoceError } from '../../core/errors.js';
import { whyUnreadable, whyUnwritable } from '../../core/file-errors.js';
import { lockFile, reserve } from '../../driver/file-calls.js';
import { checkedBlocks } from './block-device.js';
import { tableOfData, tableOfFormat1 } from './build-table.js';
import {
  type ChecksumHeader,
  checksumFileBytes,
  DISK_BYTES_MAX,
  FORMAT_VERSION,
  type FoundHeader,
  openedHeader,
  readHeader,
  writeHeader,
} from './checksum-format.js';
import { checkDiskName, DISK_NAME_BYTES_MAX, newIdentity } from './disk-identity.js';
import { forStrides, syncFolder, writeBlocks } from './file-io.js';

export const PROVISIONS = ['thin', 'thick'] as const satisfies readonly Provision[];
/** `thin`: blocks take space when they are written. `thick`: all space is reserved when the disk is made, and kept. */
export type Provision = 'thin' | 'thick';

/** Which files to open, and which may be created. */
export interface OpenFilesOptions {
  /** Path of the data; the checksums are in `PATH.crc32c`. */
  readonly path: string;
  /** Size of a new disk in bytes; a disk that is there must have this size. */
  readonly sizeBytes?: number | undefined;
  /** Grows an existing disk to `sizeBytes`. */
  readonly grow?: boolean | undefined;
  /** Makes a blank disk although checksums of an older one are there. */
  readonly create?: boolean | undefined;
  /** Name of a new disk; default: that of the file. */
  readonly name?: string | undefined;
  /** Default: of a new disk `thin`, else as it is. */
  readonly provision?: Provision | undefined;
  /** Called with messages for the operator: findings and actions. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

/** Sizes of disks are multiples of it, as those of ISO images. */
const SECTOR_BYTES = 512;
const NEVER_OPENED = { openings: [], closedNs: 0n, copy: 0 } as const;

export interface OpenedFiles {
  readonly data: FileHandle;
  readonly sums: FileHandle;
  readonly header: ChecksumHeader;
  /** The checksums are of the data as it is: both were made or closed together. */
  readonly areTogether: boolean;
}

type FoundFiles = Omit<OpenedFiles, 'areTogether'>;

interface Opening {
  readonly options: OpenFilesOptions;
  readonly sumsPath: string;
  readonly handles: FileHandle[];
  readonly undo: Array<() => Promise<unknown>>;
}

export async function openFiles(options: OpenFilesOptions): Promise<OpenedFiles> {
  const { path, sizeBytes, name } = options;
  if (sizeBytes !== undefined) checkSize(sizeBytes);
  if (name !== undefined) checkDiskName(name);
  const opening: Opening = { options, sumsPath: `${path}.crc32c`, handles: [], undo: [] };
  try {
    return await openBoth(opening);
  } catch (error) {
    for (const handle of opening.handles) await handle.close().catch(() => {});
    for (const undo of opening.undo.reverse()) await undo().catch(() => {});
    if (!(error instanceof Error) || !('syscall' in error)) throw error;
    const isMissing = sizeBytes === undefined && (error as NodeJS.ErrnoException).code === 'ENOENT';
    const why = isMissing ? whyUnreadable(error) : whyUnwritable(error);
    throw new RoceError('ERR_ROCE_IO', `cannot use ${path}: ${why}`, hintFor(error, isMissing, options), {
      cause: error,
    });
  }
}

function hintFor(error: Error, isMissing: boolean, { provision }: OpenFilesOptions): string | undefined {
  if (isMissing) return 'give a size to make it';
  const isFull = (error as NodeJS.ErrnoException).code === 'ENOSPC';
  return isFull && provision === 'thick' ? 'a thin disk takes space only when it is written' : undefined;
}

async function openBoth(opening: Opening): Promise<OpenedFiles> {
  const { options, sumsPath } = opening;
  const data = await openExisting(opening, options.path);
  const dataBytes = data === undefined ? 0 : await lockedSize(data, options.path);
  const sums = await openExisting(opening, sumsPath);
  const found: FoundHeader = sums === undefined ? { kind: 'none' } : await readHeader(sums);
  const files =
    data === undefined || dataBytes === 0
      ? await makeDisk(opening, data, sums, found)
      : await useData(opening, { data, dataBytes, sums, found });
  const before = files.header.thick;
  const thick = options.provision === undefined ? before : options.provision === 'thick';
  const isNew = files.header.generation === 0;
  const isReserved = before && !isNew;
  const { mtimeNs } = await files.data.stat({ bigint: true });
  const areTogether = isNew || files.header.closedNs === mtimeNs;
  if (thick && !isReserved) await reserveAll(files);
  if (isNew || thick !== before) {
    await files.sums.datasync();
    await files.data.datasync();
  } // Of a disk that was killed nothing is synced here: it may have written very much.
  const { growingTo: _, ...lasting } = files.header;
  const header = openedHeader(lasting, { thick, unfinished: false });
  await writeHeader(files.sums, header);
  await files.sums.datasync();
  await syncFolder(options.path);
  return { ...files, header, areTogether };
}

async function makeDisk(
  opening: Opening,
  data: FileHandle | undefined,
  sums: FileHandle | undefined,
  found: FoundHeader,
): Promise<FoundFiles> {
  const { options, sumsPath, handles, undo } = opening;
  const { path, sizeBytes, create = false, name, provision } = options;
  const unfinished = found.kind === 'present' && found.header.unfinished ? found.header : undefined;
  if (found.kind !== 'none' && unfinished === undefined && !create) throw blankRefusal(path, data === undefined, found);
  const size = sizeBytes ?? unfinished?.sizeBytes;
  if (size === undefined) {
    if (data === undefined) handles.push(await open(path, 'r+'));
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${path} is empty`, 'give a size to make a disk of it');
  }
  const header: ChecksumHeader = {
    ...newIdentity(name ?? nameOf(path)),
    sizeBytes: size,
    thick: provision === 'thick',
    unfinished: true,
    generation: 0,
    ...NEVER_OPENED,
  };
  const newData = data ?? (await openNew(opening, path));
  if (data === undefined) await lockedSize(newData, path);
  else undo.push(() => resizeFile(path, 0));
  const newSums = sums ?? (await openNew(opening, sumsPath));
  if (sums !== undefined) undo.push(() => unlink(sumsPath));
  // A new disk is all zeros: remains of an older one with its name must not show.
  await newSums.truncate(0);
  await newSums.sync();
  await newSums.truncate(checksumFileBytes(size));
  await writeHeader(newSums, header);
  await newSums.sync();
  await newData.truncate(size);
  return { data: newData, sums: newSums, header };
}

async function useData(
  opening: Opening,
  {
    data,
    dataBytes,
    sums,
    found,
  }: {
    readonly data: FileHandle;
    readonly dataBytes: number;
    readonly sums: FileHandle | undefined;
    readonly found: FoundHeader;
  },
): Promise<FoundFiles> {
  const { options, sumsPath, handles, undo } = opening;
  const { path, sizeBytes, create = false, name, provision, onNotice } = options;
  const grows = options.grow === true && sizeBytes !== undefined && sizeBytes > dataBytes;
  if (sizeBytes !== undefined && sizeBytes !== dataBytes && !grows) {
    throw new RoceError('ERR_ROCE_MISMATCH', `${path} has ${dataBytes} bytes, not ${sizeBytes}`, 'leave the size out');
  }
  checkSize(dataBytes);
  if (create) throw new RoceError('ERR_ROCE_CONFLICT', `${path} holds data already`, 'leave out create, or remove it');
  if (found.kind === 'present') {
    const { header } = found;
    const isItsSize = dataBytes === header.sizeBytes || dataBytes === header.growingTo;
    if (!isItsSize) throw foreign(path, sumsPath);
    const files = { data, sums: sums!, header: { ...header, sizeBytes: dataBytes } };
    if (!grows) return files;
    undo.push(() => resizeFile(path, dataBytes));
    return grownTo(sizeBytes, files);
  }
  if (found.kind === 'newer') {
    const hint = `this version reads up to ${FORMAT_VERSION}: use the one that wrote it`;
    throw new RoceError('ERR_ROCE_UNSUPPORTED', `${sumsPath} has a newer format`, hint);
  }
  if (found.kind === 'other' || (found.kind === 'format-1' && found.sizeBytes !== dataBytes)) {
    throw foreign(path, sumsPath);
  }
  const header: ChecksumHeader = {
    ...newIdentity(name ?? nameOf(path)),
    sizeBytes: dataBytes,
    thick: provision === 'thick',
    unfinished: false,
    generation: 0,
    ...NEVER_OPENED,
  };
  if (found.kind === 'none') {
    const newSums = sums ?? (await openNew(opening, sumsPath));
    await tableOfData(data, newSums, dataBytes);
    onNotice?.(`${path} had no checksums: it was read, and has them now in ${sumsPath}`);
    return { data, sums: newSums, header };
  }
  // The old table stays what it is until the new one is complete.
  const newPath = `${sumsPath}.new`;
  const newSums = await open(newPath, 'w+');
  handles.push(newSums);
  undo.push(() => unlink(newPath));
  await tableOfFormat1(data, sums!, newSums, dataBytes);
  await writeHeader(newSums, header);
  await newSums.sync();
  await rename(newPath, sumsPath);
  handles.splice(handles.indexOf(sums!), 1);
  await sums!.close();
  onNotice?.(`${sumsPath} had format 1 and was rewritten in format ${FORMAT_VERSION}; the disk is now ${header.uuid}`);
  return { data, sums: newSums, header };
}

/** Makes the disk larger; whenever this is cut short, the disk has its old size or the new one. */
async function grownTo(sizeBytes: number, { data, sums, header }: FoundFiles): Promise<FoundFiles> {
  const growing = openedHeader(header, { growingTo: sizeBytes });
  await writeHeader(sums, growing);
  await sums.truncate(checksumFileBytes(sizeBytes));
  await sums.sync();
  if (header.thick && !(await reserve(data.fd, header.sizeBytes, sizeBytes - header.sizeBytes))) {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', 'this system cannot reserve the space of a thick disk that grows');
  }
  if (header.thick) await reserve(sums.fd, 0, checksumFileBytes(sizeBytes));
  await data.truncate(sizeBytes);
  await data.sync();
  return { data, sums, header: { ...growing, sizeBytes } };
}

function blankRefusal(path: string, isMissing: boolean, found: FoundHeader): RoceError {
  const what = isMissing ? 'is missing' : 'is empty';
  const of =
    found.kind === 'present'
      ? `of the disk '${found.header.name}' ${found.header.uuid}, ${found.header.sizeBytes} bytes`
      : 'of a disk';
  return new RoceError(
    'ERR_ROCE_MISMATCH',
    `${path} ${what}, but ${path}.crc32c has the checksums ${of}`,
    'restore the data; for a blank disk instead, give --create and --size (in a program, create and sizeBytes)',
  );
}

function foreign(path: string, sumsPath: string): RoceError {
  const hint = 'remove it to use the disk without these checksums';
  return new RoceError('ERR_ROCE_MISMATCH', `${sumsPath} does not belong to ${path}`, hint);
}

async function reserveAll({ data, sums, header: { sizeBytes } }: FoundFiles): Promise<void> {
  await reserve(sums.fd, 0, checksumFileBytes(sizeBytes));
  if (await reserve(data.fd, 0, sizeBytes)) return;
  // Rewriting a block with its content also allocates its space.
  await forStrides(data, 0, checkedBlocks(sizeBytes), (first, bytes) => writeBlocks(data, bytes, first, sizeBytes));
}

async function openExisting({ handles }: Opening, path: string): Promise<FileHandle | undefined> {
  try {
    const handle = await open(path, 'r+');
    handles.push(handle);
    return handle;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function openNew({ handles, undo }: Opening, path: string): Promise<FileHandle> {
  const handle = await open(path, 'wx+');
  handles.push(handle);
  undo.push(() => unlink(path));
  return handle;
}

async function lockedSize(data: FileHandle, path: string): Promise<number> {
  if (!(await lockFile(data.fd))) throw new RoceError('ERR_ROCE_BUSY', `another process uses ${path}`);
  const stat = await data.stat();
  if (!stat.isFile()) throw new RoceError('ERR_ROCE_UNSUPPORTED', `${path} is not a regular file`);
  return stat.size;
}

async function resizeFile(path: string, bytes: number): Promise<void> {
  const handle = await open(path, 'r+');
  await handle.truncate(bytes);
  await handle.close();
}

function nameOf(path: string): string {
  let name = basename(path);
  while (Buffer.byteLength(name) > DISK_NAME_BYTES_MAX) name = name.slice(0, -1);
  return name;
}

function checkSize(sizeBytes: number): void {
  const isPossible = sizeBytes > 0 && sizeBytes % SECTOR_BYTES === 0 && sizeBytes <= DISK_BYTES_MAX;
  if (isPossible) return;
  const hint = `give a multiple of ${SECTOR_BYTES}, at most 64 TiB`;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a disk cannot have ${sizeBytes} bytes`, hint);
}
