import { formatBytes } from 'rocev2/internal/core';
import type { QpRow } from 'rocev2/internal/estats';

/** Operations that were copies to mapped regions of local peers. */
export type Copies = NonNullable<QpRow['copies']>;

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

/** The copies of one or more devices. */
export function copiesOf(...devices: readonly CopyCounters[]): Copies {
  let [operations, bytes] = [0, 0];
  for (const { direct_writes = 0, direct_reads = 0, direct_atomics = 0, direct_bytes = 0 } of devices) {
    operations += direct_writes + direct_reads + direct_atomics;
    bytes += direct_bytes;
  }
  return { operations, bytes };
}

/** Says what was done by copies; undefined: nothing. */
export function copyWords({ operations, bytes }: Copies): string | undefined {
  if (operations === 0) return undefined;
  return `${operations} WRITEs, READs and atomics (${formatBytes(bytes)}) were copies to mapped regions, without packets`;
}

/** Notes the copies, if there were any, and returns them for the document. */
export function reportCopies(output: { note(text: string): void }, ...devices: readonly CopyCounters[]): Copies {
  const copies = copiesOf(...devices);
  const words = copyWords(copies);
  if (words !== undefined) output.note(words);
  return copies;
}
