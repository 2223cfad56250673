import type { OpLatency } from 'rocev2/internal/estats';
import type { AttachedLatency } from '../messages/attached.js';

export function latencyRows(latency: readonly OpLatency[]): AttachedLatency[] {
  return latency.map(({ op, count, p50Ns, p99Ns, maxNs, bars }) => ({ op, count, p50Ns, p99Ns, maxNs, buckets: bars }));
}
