import { RpcError } from '@rocev2/rpc';
import { checkWhole, type RandomSource, RoceError } from 'rocev2/internal/core';
import { uuidText } from 'rocev2/internal/disk';
import { type ClusterStatus, codeOf } from '../messages.js';
import { StreamWriter } from '../stream-writer.js';
import { BlockMap, DISK_BYTES_MAX, DISK_SECTOR_BYTES } from './block-map.js';
import { checkDiskName, type DiskParts, diskOf, logOf, mapOf } from './disk-parts.js';
import type { DiskMetadata } from './map-records.js';
import { MapStore } from './map-store.js';
import { findRoot, recoverDisk } from './recovery.js';
import { StreamDisk } from './stream-disk.js';

const COPY_ATTEMPTS = 8;

/** A disk in a list. */
export interface ListedStreamDisk {
  /** Its name. */
  readonly disk: string;
  /** Its size; missing if it was never finished. */
  readonly sizeBytes?: number;
  /** Whether it never changes. */
  readonly isSnapshot: boolean;
  /** The disk that it was made from; missing if it was made empty. */
  readonly parent?: string;
  /** Extents of its log. */
  readonly extents: number;
  /** Bytes of records in those that are sealed, three times on nodes; disks may share them. */
  readonly storedBytes: number;
  /** The owner, which writes to it; missing if there is none. */
  readonly owner?: string;
  /** Where the owner serves it, `HOST:PORT`; missing if it does not. */
  readonly address?: string;
}

interface NewStreams {
  readonly log: StreamWriter;
  readonly map: StreamWriter;
}

function newUuid(random: RandomSource): string {
  const bytes = Buffer.alloc(16);
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(random.u32(), at);
  bytes[6] = (bytes[6] & 0x0f) | 0x40; // RFC 9562, section 5.4: version 4
  bytes[8] = (bytes[8] & 0x3f) | 0x80; // and its variant.
  return uuidText(bytes);
}

export async function createDisk(
  parts: DiskParts,
  { name, sizeBytes, owner }: { readonly name: string; readonly sizeBytes: number; readonly owner: string },
): Promise<void> {
  checkDiskName(name);
  checkWhole('sizeBytes', sizeBytes, DISK_SECTOR_BYTES, DISK_BYTES_MAX);
  if (sizeBytes % DISK_SECTOR_BYTES !== 0) {
    const hint = `a multiple of ${DISK_SECTOR_BYTES}, 1 TiB at most`;
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a disk of ${sizeBytes} bytes`, hint);
  }
  await fill(parts, name, owner, async ({ map }) => {
    const store = MapStore.of({ parts, name, owner }, BlockMap.forDisk(sizeBytes), {
      writer: map,
      extents: [],
    });
    const uuid = newUuid(parts.random);
    await store.checkpoint({ name, uuid, sizeBytes, isSnapshot: false }, undefined);
  });
}

/**
 * Makes a disk that has what another one has now: all that was acknowledged before the call, and of later writes some
 * beginning. Both share the extents; none of them changes, and each is deleted when no disk needs it.
 */
export async function copyDisk(
  parts: DiskParts,
  of: { readonly source: string; readonly name: string; readonly isSnapshot: boolean; readonly owner: string },
): Promise<void> {
  const { source, name, owner } = of;
  checkDiskName(name);
  await fill(parts, name, owner, async (streams) => {
    for (let attempt = 1; ; attempt++) {
      const adopted: number[] = [];
      try {
        await copyOnce(parts, of, streams, adopted);
        return;
      } catch (error) {
        if (codeOf(error) !== 'MISSING') throw error;
        if (!(await exists(parts, source))) throw new RpcError('MISSING', `there is no disk '${source}'`);
        if (attempt === COPY_ATTEMPTS) throw error; // Its owner has cleaned between two of our questions, each time.
        await change(parts, 'drop', streams, { log: adopted, map: adopted });
      }
    }
  });
}

async function copyOnce(
  parts: DiskParts,
  { source, name, isSnapshot, owner }: Parameters<typeof copyDisk>[1],
  streams: NewStreams,
  adopted: number[],
): Promise<void> {
  const { manager, timing, reader } = parts;
  const sealTail = async (stream: string) => (await manager.call('cut', { stream }, timing.callMs)).extents;
  const lastRoot = async () => findRoot(reader, await sealTail(mapOf(source)));
  const root = await lastRoot();
  const logExtents = await sealTail(logOf(source));
  const { extent, offset } = await lastRoot();
  if (extent !== root.extent || offset !== root.offset)
    throw new RpcError('MISSING', `'${source}' wrote a checkpoint during the copy, and may have deleted data`);
  const { map } = await recoverDisk(reader, root, logExtents);
  const shared = logExtents.filter(({ extent }) => map.liveIn(extent) > 0);
  const last = shared.at(-1);
  const position = last && { extent: last.extent, offset: last.sealed! };
  const store = MapStore.of({ parts, name, owner }, map, { writer: streams.map, extents: [] }, root);
  const metadata: DiskMetadata = {
    name,
    uuid: newUuid(parts.random),
    sizeBytes: root.disk.sizeBytes,
    isSnapshot,
    parent: source,
  };
  const own = new Set(await store.checkpoint(metadata, position).then(() => extentsOf(parts, mapOf(name))));
  // The root comes first: a copy that is never finished has none of another disk.
  const log = shared.map(({ extent }) => extent);
  const pages = [...store.pageExtents].filter((extent) => !own.has(extent));
  adopted.push(...log, ...pages);
  await change(parts, 'adopt', streams, { log, map: pages });
}

async function extentsOf({ manager, timing }: DiskParts, stream: string): Promise<number[]> {
  const { extents } = await manager.call('locate', { stream }, timing.callMs);
  return extents.map(({ extent }) => extent);
}

async function change(
  { manager, timing }: DiskParts,
  method: 'adopt' | 'drop',
  streams: NewStreams,
  extents: { readonly log: readonly number[]; readonly map: readonly number[] },
): Promise<void> {
  // The log comes last: a reader checks that everything else exists, and must not read a disk whose map may vanish.
  for (const which of ['map', 'log'] as const) {
    const { stream, epoch } = streams[which];
    if (extents[which].length === 0) continue;
    await manager.call(method, { stream, epoch, extents: extents[which] }, timing.callMs);
  }
}

async function fill(
  parts: DiskParts,
  name: string,
  owner: string,
  work: (streams: NewStreams) => Promise<void>,
): Promise<void> {
  const { manager, timing } = parts;
  const opened: StreamWriter[] = [];
  const open = async (stream: string) => {
    await manager.call('createStream', { stream }, timing.callMs);
    const { writer, extents } = await StreamWriter.open({ stream, owner }, parts);
    opened.push(writer);
    if (extents.length > 0) throw taken(name);
    return writer;
  };
  if (await exists(parts, name)) throw taken(name);
  const close = () => Promise.all(opened.map((writer) => writer.close()));
  try {
    const log = await open(logOf(name));
    await work({ log, map: await open(mapOf(name)) });
    await close();
  } catch (error) {
    await close();
    const isOurs = opened.length === 2 && (error as RpcError).remoteCode !== 'CONFLICT';
    if (isOurs) await removeDisk(parts, name).catch(() => {});
    throw error;
  }
}

function taken(name: string): RpcError {
  const rest = `if it was never finished, or deleted in part, 'rocev2 extents disk rm ${name}' deletes the rest`;
  return new RpcError('CONFLICT', `there is a disk '${name}' already; ${rest}`);
}

async function exists({ manager, timing }: DiskParts, disk: string): Promise<boolean> {
  try {
    await manager.call('locate', { stream: mapOf(disk) }, timing.callMs);
    return true;
  } catch (error) {
    if (codeOf(error) === 'MISSING') return false;
    throw error;
  }
}

/** The owner of a disk, and its address. */
export interface DiskOwner {
  /** The owner; absent if there is none. */
  readonly owner?: string;
  /** Where the owner serves it, `HOST:PORT`; missing if it has not announced it. */
  readonly address?: string;
}

export async function diskOwner({ manager, timing }: DiskParts, name: string): Promise<DiskOwner> {
  checkDiskName(name);
  try {
    return await manager.call('owner', { stream: logOf(name) }, timing.callMs);
  } catch (error) {
    throw codeOf(error) === 'MISSING' ? new RpcError('MISSING', `there is no disk '${name}'`) : error;
  }
}

function inUse(name: string): RpcError {
  const what = 'end the program that has it; the lease of one that died ends 30 s after it was last heard';
  return new RpcError('BUSY', `the disk '${name}' is in use: ${what}`);
}

export async function removeDisk({ manager, timing }: DiskParts, name: string): Promise<void> {
  let isGone = true;
  for (const stream of [logOf(name), mapOf(name)]) {
    try {
      await manager.call('deleteStream', { stream }, timing.callMs);
      isGone = false;
    } catch (error) {
      if (codeOf(error) === 'BUSY') throw inUse(name);
      if (codeOf(error) !== 'MISSING') throw error;
    }
  }
  if (isGone) throw new RpcError('MISSING', `there is no disk '${name}'`);
}

export async function describeDisk(
  { manager, timing, reader }: DiskParts,
  name: string,
): Promise<DiskMetadata | undefined> {
  const { extents } = await manager.call('locate', { stream: mapOf(name) }, timing.callMs);
  try {
    return (await findRoot(reader, extents)).disk;
  } catch {
    return undefined;
  }
}

export async function listDisks(parts: DiskParts, { streams }: ClusterStatus): Promise<ListedStreamDisk[]> {
  const found: ListedStreamDisk[] = [];
  for (const { stream, extents, sealedBytes, owner, address } of streams) {
    const of = diskOf(stream);
    if (of === undefined || (of.part === 'map' && streams.some((other) => other.stream === logOf(of.disk)))) continue;
    const { disk } = of;
    if (of.part === 'map') {
      found.push({ disk, isSnapshot: false, extents: 0, storedBytes: 0 });
      continue;
    }
    const known = await describeDisk(parts, disk).catch(() => undefined);
    const { sizeBytes, isSnapshot = false, parent } = known ?? {};
    found.push({
      disk,
      ...(sizeBytes !== undefined && { sizeBytes }),
      isSnapshot,
      ...(parent !== undefined && { parent }),
      extents,
      storedBytes: sealedBytes,
      ...(owner !== undefined && { owner }),
      ...(address !== undefined && { address }),
    });
  }
  return found;
}

export async function openDisk(
  parts: DiskParts,
  options: { readonly name: string; readonly owner: string; readonly takeOver: boolean },
): Promise<StreamDisk> {
  const { name } = options;
  checkDiskName(name);
  if (!(await exists(parts, name))) throw new RpcError('MISSING', `there is no disk '${name}'`);
  const known = await describeDisk(parts, name);
  return known?.isSnapshot === true ? StreamDisk.openSnapshot(parts, name) : StreamDisk.open(parts, options);
}
