/** What holds for the extents of a simulated cluster, in replicas or coded, once everything is well. */

import { type RandomSource, randomInt } from '../../../src/core/random.js';
import { type CodeName, erasureCode } from '../src/coding/erasure-code.js';
import { fragmentBytes, fragmentKey } from '../src/coding/layout.js';
import { type ExtentRecord, REPLICAS } from '../src/metadata-schema.js';
import type { Cluster } from './cluster.js';

/** Names of the files that a node has of an extent. */
export function filesOf(extent: number, { replicas, coded }: ExtentRecord, node: number): string[] {
  const fragments = coded?.fragments ?? [];
  return [
    ...(replicas.includes(node) ? [`${extent}.extent`] : []),
    ...fragments.flatMap((one, fragment) =>
      one.node === node ? [`${fragmentKey({ extent, fragment, ...one })}.fragment`] : [],
    ),
  ];
}

/**
 * Whether a sealed extent has all its fragments, each on a node of its own that is there, or all its replicas if it is not worth coding. A replica too many, which
 * was made while a node was away that came back, must have gone, too.
 */
function isWholeExtent(
  { sealed, replicas, coded }: ExtentRecord,
  code: CodeName | undefined,
  isThere: (node: number) => boolean,
): boolean {
  if (coded !== undefined) {
    const nodes = coded.fragments.map(({ node }) => node);
    return replicas.length === 0 && nodes.every(isThere) && new Set(nodes).size === nodes.length;
  }
  if (code !== undefined && fragmentBytes({ code, length: sealed! }) * erasureCode(code).total < REPLICAS * sealed!)
    return false;
  return replicas.length === REPLICAS && replicas.every(isThere);
}

/** Whether each sealed extent of a cluster is whole, on nodes that are up. */
export async function isRedundant(cluster: Cluster): Promise<boolean> {
  const isThere = (node: number) => cluster.machineOf(node)?.node !== undefined;
  return (await cluster.metadata.list('extent/')).every(({ value }) => {
    const record = JSON.parse(value) as ExtentRecord;
    return record.sealed === undefined || isWholeExtent(record, cluster.code, isThere);
  });
}

/** Ends so many nodes for ever. */
export function stopSome(cluster: Cluster, random: RandomSource, count: number): void {
  const machines = [...cluster.machines];
  for (let k = 0; k < count; k++) {
    const [machine] = machines.splice(randomInt(random, 0, machines.length - 1), 1);
    cluster.stopNode(machine, true);
  }
}
