/**
 * Selects the AES-GCM of a thread: the fastest that is available and correct, or the one that a variable names.
 */

import { NS_PER_MS } from '../../core/units.js';
import { PSP_CLEAR_BYTES, PSP_ICV_BYTES } from '../../packet/psp.js';
import { type CipherImplementation, KEY_BYTES_128, NodeCipher } from '../../port/secure/packet-cipher.js';
import { ImplementationSelection, leastNs, type SelectionRules } from '../implementation-selection.js';
import { ciphersRight } from './cipher-self-test.js';
import { opensslEvp } from './evp-cipher.js';
import { ipsecMb } from './ipsec-mb-cipher.js';

export const CIPHER_VARIABLE = 'ROCEV2_CIPHER';

/** By node:crypto: it works everywhere, and makes an object for each packet. */
export const nodeCrypto = (): CipherImplementation => ({ name: 'node:crypto', make: (key) => new NodeCipher(key) });

const TRIED_BYTES = 4096;
const TRIED_PACKETS = 15;
/** Time for each candidate. */
const TRIED_NS = NS_PER_MS;

function packetNs({ make }: CipherImplementation): number {
  const cipher = make(new Uint8Array(KEY_BYTES_128));
  const text = new Uint8Array(new ArrayBuffer(TRIED_BYTES));
  const packet = new Uint8Array(new ArrayBuffer(PSP_CLEAR_BYTES + TRIED_BYTES + PSP_ICV_BYTES));
  const sealAndOpen = () => {
    for (let i = 0; i < TRIED_PACKETS; i++) {
      cipher.seal(text, 0, TRIED_BYTES, packet, 0, PSP_CLEAR_BYTES);
      cipher.open(packet, 0, PSP_CLEAR_BYTES, TRIED_BYTES, text, 0);
    }
  };
  const ns = leastNs(sealAndOpen, TRIED_NS) / TRIED_PACKETS;
  cipher.close();
  return ns;
}

/** How one is selected. */
export const CIPHER_RULES: SelectionRules<CipherImplementation> = {
  what: 'AES-GCM',
  variable: CIPHER_VARIABLE,
  candidates: {
    'ipsec-mb': () => ipsecMb(),
    openssl: opensslEvp,
    'node:crypto': nodeCrypto,
  },
  // Making its object takes longer than the whole packet with the others.
  lastResort: 'node:crypto',
  isCorrect: ciphersRight,
  failure: 'makes wrong packets',
  costOf: packetNs,
};

const SELECTION = new ImplementationSelection(CIPHER_RULES);

/**
 * The one for this thread that `wanted` names, by default the fastest. Throws as
 * {@link ImplementationSelection.select}.
 */
export function chooseCipher(wanted?: string): CipherImplementation {
  return SELECTION.select(wanted);
}
