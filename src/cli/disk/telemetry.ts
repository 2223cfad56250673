/** Telemetry of disk programs: their disk is followed, and their control socket says how it does. */

import { NS_PER_S } from '../../core/units.js';
import { nowNs, wallMs } from '../../driver/system-clock.js';
import { serveDocument } from '../../estats/control-socket.js';
import type { DiskDocument } from '../../estats/disk-document.js';
import type { BlockDevice } from '../../storage-rpc/disk/block-device.js';
import { WatchedDisk } from '../../storage-rpc/disk/watched-disk.js';

/** What the program knows, when it is asked. */
export type DiskFacts = Pick<
  DiskDocument,
  'role' | 'address' | 'store' | 'nbdClients' | 'connections' | 'crcMismatches' | 'path'
>;

interface DiskTelemetry {
  /** To be served in place of the disk itself. */
  readonly disk: BlockDevice;
  /** Answers on the control socket from now on. Rejects with ERR_ROCE_IO when there can be none. */
  serve(facts: () => DiskFacts): Promise<AsyncDisposable>;
}

/** Follows the disk, or, where nobody has asked for that, leaves it alone. */
export function diskTelemetry(disk: BlockDevice, isWanted: boolean): DiskTelemetry {
  if (!isWanted) return { disk, serve: async () => ({ [Symbol.asyncDispose]: async () => {} }) };
  const startNs = nowNs();
  const watched = new WatchedDisk(disk, nowNs);
  return {
    disk: watched,
    serve: async (facts) => {
      const server = await serveDocument(
        (): DiskDocument => ({
          kind: 'disk',
          version: 1,
          pid: process.pid,
          time: new Date(wallMs()).toISOString(),
          uptimeSeconds: (nowNs() - startNs) / NS_PER_S,
          sizeBytes: disk.sizeBytes,
          ...watched.activity,
          ...facts(),
        }),
      );
      return { [Symbol.asyncDispose]: () => server.close() };
    },
  };
}
