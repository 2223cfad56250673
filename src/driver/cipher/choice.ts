/** Which AES-GCM a thread seals and opens packets with: the fastest of those that are there and right, or the one that a variable names. */

import { NS_PER_MS } from '../../core/units.js';
import { PSP_CLEAR_BYTES, PSP_ICV_BYTES } from '../../packet/psp.js';
import { type CipherImplementation, KEY_BYTES_128, NodeCipher } from '../../port/secure/packet-cipher.js';
import { type Candidate, type Contest, fastestOf, leastNs, namedOne } from '../fastest.js';
import { opensslEvp } from './evp-cipher.js';
import { ipsecMb } from './ipsec-mb-cipher.js';
import { ciphersRight } from './self-test.js';

/** Names one implementation, which is then used or the device is not opened. */
export const CIPHER_VARIABLE = 'ROCEV2_CIPHER';

/** By node:crypto: it works everywhere, and makes an object for each packet. */
export const nodeCrypto = (): CipherImplementation => ({ name: 'node:crypto', make: (key) => new NodeCipher(key) });

/** All by name, in the order in which they usually win. */
export const CIPHER_CANDIDATES: Readonly<Record<string, Candidate<CipherImplementation>>> = {
  'ipsec-mb': () => ipsecMb(),
  openssl: opensslEvp,
  'node:crypto': nodeCrypto,
};

const CONTEST: Contest<CipherImplementation> = {
  what: 'AES-GCM',
  variable: CIPHER_VARIABLE,
  isRight: ciphersRight,
  wrong: 'makes wrong packets',
};

const TRIED_BYTES = 4096;
const TRIED_PACKETS = 15;
/** Time for each candidate. */
const TRIED_NS = NS_PER_MS;

/** The one of `candidates` that costs least, of those that can be had and are right, else the last resort. Throws ERR_ROCE_UNSUPPORTED when there is none. */
export function fastestCipher(
  candidates: Iterable<Candidate<CipherImplementation>>,
  costOf: (implementation: CipherImplementation) => number = packetNs,
  lastResort?: Candidate<CipherImplementation>,
): CipherImplementation {
  return fastestOf(CONTEST, candidates, costOf, { lastResort });
}

/** The one of `candidates` with this name. Throws ERR_ROCE_UNKNOWN_NAME for a name that none has, and ERR_ROCE_UNSUPPORTED where it cannot be had or is wrong. */
export function namedCipher(
  name: string,
  candidates: Readonly<Record<string, Candidate<CipherImplementation>>>,
): CipherImplementation {
  return namedOne(CONTEST, name, candidates);
}

/** Nanoseconds to seal and open one packet of 4 KiB. */
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

/** node:crypto takes longer for the object of each packet than the others for all of it. */
const { 'node:crypto': lastResort, ...NATIVE } = CIPHER_CANDIDATES;

let chosenFor: string | undefined;
let chosen: CipherImplementation | undefined;

/** The one for this thread that `wanted` names, by default the fastest. Chosen once a thread and name. */
export function chooseCipher(wanted: string | undefined = process.env[CIPHER_VARIABLE]): CipherImplementation {
  if (chosen === undefined || chosenFor !== wanted) {
    chosen =
      wanted === undefined || wanted === ''
        ? fastestCipher(Object.values(NATIVE), packetNs, lastResort)
        : namedCipher(wanted, CIPHER_CANDIDATES);
    chosenFor = wanted;
  }
  return chosen;
}
