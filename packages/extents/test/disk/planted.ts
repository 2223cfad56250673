/** Bugs for a disk to have, each of which loses or spoils data now and then. */

import { vi } from 'vitest';
import { BlockMap } from '../../src/disk/block-map.js';
import { Cleaner } from '../../src/disk/cleaner.js';
import { MapStore } from '../../src/disk/map-store.js';
import { StreamDisk } from '../../src/disk/stream-disk.js';
import { MetadataSchema } from '../../src/metadata-schema.js';
import { Replica } from '../../src/replica.js';
import type { Location } from '../../src/stream-writer.js';

export const PLANTED: Readonly<Record<string, () => void>> = {
  'acknowledges a write before it is durable': () => {
    const { applied } = StreamDisk.prototype;
    vi.spyOn(StreamDisk.prototype, 'applied').mockImplementation(async function (this: StreamDisk, ...args) {
      applied.apply(this, args).catch(() => {});
    });
  },
  'says of a checkpoint that it knows what was written while its pages were': () => {
    let latest: Location | undefined;
    const { applied } = StreamDisk.prototype;
    vi.spyOn(StreamDisk.prototype, 'applied').mockImplementation(async function (this: StreamDisk, record, bytes, at) {
      await applied.call(this, record, bytes, at);
      const { extent, offset } = await at;
      latest = { extent, offset: offset + Math.ceil((bytes + 64 + 4 * Math.ceil(bytes / 4096)) / 512) * 512 };
    });
    const { rootOf } = MapStore.prototype;
    vi.spyOn(MapStore.prototype, 'rootOf').mockImplementation(function (this: MapStore, disk, position) {
      return rootOf.call(this, disk, disk.name === 'disk' && position !== undefined ? latest : position);
    });
  },
  'frees extents without a look at the map': () => {
    vi.spyOn(Cleaner.prototype, 'isNeeded').mockReturnValue(false);
  },
  'moves blocks that have been overwritten': () => {
    vi.spyOn(BlockMap.prototype, 'isAt').mockReturnValue(true);
  },
  'deletes what only snapshots and clones have': () => {
    const { streams } = MetadataSchema.prototype;
    vi.spyOn(MetadataSchema.prototype, 'streams').mockImplementation(async function (this: MetadataSchema) {
      return (await streams.call(this)).filter(({ stream }) => !stream.startsWith('copy'));
    });
  },
  'takes appends of an owner that has been fenced': () => {
    vi.spyOn(Replica.prototype, 'checkEpoch').mockImplementation(() => {});
  },
};
