/**
 * What links can carry from some hosts to others: the maximum flow, by augmenting along shortest paths (Edmonds and
 * Karp, JACM 19(2), 1972).
 */

export type LinkRates = ReadonlyMap<string, { readonly rateBps: number }>;

type Residual = Map<string, Map<string, number>>;

export function capacityBps(links: LinkRates, senders: ReadonlySet<string>, receivers: ReadonlySet<string>): number {
  // A host does not forward received data: its two directions are separate nodes.
  const sinkOf = (host: string) => `${host} receives`;
  const left: Residual = new Map();
  for (const [name, { rateBps }] of links) {
    const [a, b] = name.split('>');
    const end = receivers.has(b) ? sinkOf(b) : b;
    edgesOf(left, a).set(end, rateBps);
    if (!edgesOf(left, end).has(a)) edgesOf(left, end).set(a, 0);
  }
  const sinks = new Set([...receivers].map(sinkOf));
  let total = 0;
  for (;;) {
    const path = shortestPath(left, senders, sinks);
    if (path === undefined) return total;
    const bps = Math.min(...path.map(([a, b]) => edgesOf(left, a).get(b)!));
    for (const [a, b] of path) {
      edgesOf(left, a).set(b, edgesOf(left, a).get(b)! - bps);
      edgesOf(left, b).set(a, edgesOf(left, b).get(a)! + bps);
    }
    total += bps;
  }
}

function edgesOf(left: Residual, node: string): Map<string, number> {
  let edges = left.get(node);
  if (edges === undefined) {
    edges = new Map();
    left.set(node, edges);
  }
  return edges;
}

function shortestPath(
  left: Residual,
  senders: ReadonlySet<string>,
  sinks: ReadonlySet<string>,
): Array<readonly [string, string]> | undefined {
  const cameFrom = new Map<string, string | undefined>([...senders].map((sender) => [sender, undefined]));
  // A map is gone through in the order of its keys, and new ones come last: it is its own queue.
  for (const at of cameFrom.keys()) {
    if (sinks.has(at)) return pathTo(at, cameFrom);
    for (const [next, bps] of edgesOf(left, at)) if (bps > 0 && !cameFrom.has(next)) cameFrom.set(next, at);
  }
  return undefined;
}

function pathTo(end: string, cameFrom: ReadonlyMap<string, string | undefined>): Array<readonly [string, string]> {
  const path: Array<readonly [string, string]> = [];
  for (let node = end, before = cameFrom.get(node); before !== undefined; node = before, before = cameFrom.get(node)) {
    path.unshift([before, node]);
  }
  return path;
}
