import { NS_PER_S } from 'rocev2/internal/core';
import { type BlockDevice, WatchedDisk } from 'rocev2/internal/disk';
import { nowNs, wallMs } from 'rocev2/internal/driver';
import { type DiskDocument, serveDocument } from 'rocev2/internal/estats';

export type DiskState = Pick<
  DiskDocument,
  'role' | 'address' | 'store' | 'nbdClients' | 'connections' | 'crcMismatches' | 'wrongDisks' | 'file' | 'path'
>;

export interface DiskTelemetry {
  readonly disk: BlockDevice;
  serve(facts: () => DiskState): Promise<AsyncDisposable>;
}

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
          identity: identityOf(disk),
          ...watched.activity,
          ...facts(),
        }),
      );
      return { [Symbol.asyncDispose]: () => server.close() };
    },
  };
}

function identityOf({ identity }: BlockDevice): DiskDocument['identity'] {
  if (identity === undefined) return null;
  const { uuid, name, generation } = identity;
  return { uuid, name, generation };
}
