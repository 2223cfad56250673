import { formatBytes } from 'rocev2/internal/core';

/** What carries the data between two processes of this host, and how to choose otherwise; undefined: the network. */
export function wireWords(
  { sharesMemory, mapsRegion }: { readonly sharesMemory: boolean; readonly mapsRegion: boolean },
  isOneSided: boolean,
): string | undefined {
  if (mapsRegion && isOneSided) return 'copies to mapped regions, without packets; packets with --no-map-regions';
  return sharesMemory ? 'memory that both processes share; UDP with --io mmsg' : undefined;
}

/** The counters of a device that count copies to and from mapped regions. */
export interface CopyCounters {
  readonly direct_writes?: number | undefined;
  readonly direct_reads?: number | undefined;
  readonly direct_atomics?: number | undefined;
  readonly direct_bytes?: number | undefined;
}

/** What a device did by copies; undefined: nothing. */
export function copyWords({
  direct_writes = 0,
  direct_reads = 0,
  direct_atomics = 0,
  direct_bytes = 0,
}: CopyCounters): string | undefined {
  const operations = direct_writes + direct_reads + direct_atomics;
  if (operations === 0) return undefined;
  return `${operations} WRITEs, READs and atomics (${formatBytes(direct_bytes)}) were copies to mapped regions, without packets`;
}
