import { formatBytes, RoceError } from 'rocev2/internal/core';
import type { NamespaceIdentity } from './nvme-host.js';

const NAMES = ['uuid', 'nguid', 'eui64'] as const;

/**
 * Throws ERR_ROCE_MISMATCH where `found` is not the namespace that was `expected`: by any name that this one had, and
 * by its blocks. A namespace with a name may have grown; one without must have the same size, which is its only
 * identity.
 */
export function expectSameNamespace(expected: NamespaceIdentity, found: NamespaceIdentity): void {
  const named = NAMES.filter((name) => isName(expected[name]));
  const other = named.find((name) => found[name] !== expected[name]);
  if (other !== undefined) throw wrong(`its ${other.toUpperCase()} is ${found[other]}, not ${expected[other]}`);
  if (found.blockBytes !== expected.blockBytes) {
    throw wrong(`it has blocks of ${found.blockBytes} bytes, not ${expected.blockBytes}`);
  }
  const isTooSmall = found.sizeBytes < expected.sizeBytes;
  if (isTooSmall || (named.length === 0 && found.sizeBytes !== expected.sizeBytes)) {
    throw wrong(`it has ${formatBytes(found.sizeBytes)}, not ${formatBytes(expected.sizeBytes)}`);
  }
}

/** A name of zeros is none (NVMe base specification 2.0, figure 276). */
function isName(id: string): boolean {
  return /[1-9a-f]/.test(id);
}

function wrong(why: string): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', `the target has another namespace: ${why}`);
}
